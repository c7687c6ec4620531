// Who may listen where.
#include "rpc/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "rpc/test_server.h"

namespace turnstile::rpc {
namespace {

// What a process leaves that dies without cleaning up, or the living one, as long as it is kept.
UniqueFd bind_at(const std::string& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST(UnixListener, OnlyThisUserMayEnter) {
  const TestDirectory directory;
  const mode_t mask = ::umask(0);
  const Result<UniqueFd> listener = listen_on_unix(directory / "socket");
  ::umask(mask);
  ASSERT_TRUE(listener) << listener.error().message;
  struct stat status;
  ASSERT_EQ(::stat((directory / "socket").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_TRUE(connect_to(directory / "socket").is_open());
}

TEST(UnixListener, ASocketThatADeadProcessLeftIsReplaced) {
  const TestDirectory directory;
  bind_at(directory / "socket", SOCK_STREAM).reset();
  const Result<UniqueFd> listener = listen_on_unix(directory / "socket");
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(connect_to(directory / "socket").is_open());
}

TEST(UnixListener, ALiveSocketIsLeftAlone) {
  const TestDirectory directory;
  const Result<UniqueFd> first = listen_on_unix(directory / "socket");
  ASSERT_TRUE(first);
  EXPECT_FALSE(listen_on_unix(directory / "socket"));
  EXPECT_TRUE(connect_to(directory / "socket").is_open());
}

TEST(UnixListener, AFileIsLeftAlone) {
  const TestDirectory directory;
  std::ofstream(directory / "file") << "text";
  EXPECT_FALSE(listen_on_unix(directory / "file"));
  EXPECT_EQ(std::filesystem::file_size(directory / "file"), 4u);
}

TEST(UnixListener, APathMustFitIntoASocketsAddress) {
  const TestDirectory directory;
  const Result<UniqueFd> listener = listen_on_unix(directory / std::string(200, 'x'));
  ASSERT_FALSE(listener);
  EXPECT_NE(listener.error().message.find("shorter"), std::string::npos);
}

TEST(UnixListener, ALiveSocketOfAnotherKindIsLeftAlone) {
  const TestDirectory directory;
  const UniqueFd other = bind_at(directory / "socket", SOCK_DGRAM);
  EXPECT_FALSE(listen_on_unix(directory / "socket"));
  EXPECT_TRUE(std::filesystem::exists(directory / "socket"));
}

}  // namespace
}  // namespace turnstile::rpc
