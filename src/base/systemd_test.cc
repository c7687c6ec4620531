// What a service manager passes and is told. Descriptors that are passed have fixed numbers, so those tests
// run in a process of their own.
#include "base/systemd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>

namespace turnstile {
namespace {

int tcp_socket(bool listening) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (listening) ::listen(fd, 1);
  return fd;
}

// As if started with these variables; `descriptors` become 3, 4, … Ends the process: 0, if that many were
// taken.
[[noreturn]] void take(std::vector<int> descriptors, const std::string& pid, const char* count,
                       const char* names, const std::vector<std::string>& expected) {
  for (int& fd : descriptors) fd = ::fcntl(fd, F_DUPFD, 100);
  for (size_t i = 0; i < descriptors.size(); ++i) ::dup2(descriptors[i], 3 + int(i));
  ::setenv("LISTEN_PID", pid.c_str(), 1);
  ::setenv("LISTEN_FDS", count, 1);
  if (names != nullptr) ::setenv("LISTEN_FDNAMES", names, 1);
  const Result<std::vector<PassedSocket>> taken = take_passed_sockets();
  if (!taken) {
    fmt::print(stderr, "{}", taken.error().message);
    std::_Exit(2);
  }
  bool good = taken->size() == expected.size();
  for (size_t i = 0; good && i < expected.size(); ++i)
    good = (*taken)[i].name == expected[i] && (*taken)[i].fd.get() == 3 + int(i) &&
           (::fcntl(3 + int(i), F_GETFD) & FD_CLOEXEC) != 0 &&
           (::fcntl(3 + int(i), F_GETFL) & O_NONBLOCK) != 0;
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
    good = good && std::getenv(variable) == nullptr;
  std::_Exit(good ? 0 : 1);
}

std::string own_pid() { return std::to_string(::getpid()); }

TEST(PassedSockets, AreTakenInOrderWithTheirNames) {
  EXPECT_EXIT(take({tcp_socket(true), tcp_socket(true)}, own_pid(), "2", "api:metrics", {"api", "metrics"}),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(take({tcp_socket(true), tcp_socket(true)}, own_pid(), "2", nullptr, {"unknown", "unknown"}),
              testing::ExitedWithCode(0), "");
}

TEST(PassedSockets, ThoseOfAnotherProcessAreNotTaken) {
  EXPECT_EXIT(take({tcp_socket(true)}, "1", "1", "api", {}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(take({tcp_socket(true)}, "", "1", "api", {}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(take({tcp_socket(true)}, own_pid() + "x", "1", "api", {}), testing::ExitedWithCode(0), "");
}

TEST(PassedSockets, WhatDoesNotListenIsRefused) {
  EXPECT_EXIT(take({tcp_socket(false)}, own_pid(), "1", "api", {}), testing::ExitedWithCode(2),
              "descriptor 3 \\(api\\).*not a stream socket that listens");
  EXPECT_EXIT(take({::open("/dev/null", O_RDONLY)}, own_pid(), "1", nullptr, {}), testing::ExitedWithCode(2),
              "not a stream socket");
}

// The manager's end: abstract, so that there is no file to remove.
class Manager {
 public:
  Manager() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("turnstile-test-{}", ::getpid());
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  }
  ~Manager() { ::unsetenv("NOTIFY_SOCKET"); }
  std::string heard() const {
    char buffer[100];
    const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return {buffer, size < 0 ? 0 : size_t(size)};
  }

 private:
  const UniqueFd socket_{::socket(AF_UNIX, SOCK_DGRAM, 0)};
};

TEST(ServiceManager, IsTold) {
  const Manager manager;
  notify_manager("READY=1");
  EXPECT_EQ(manager.heard(), "READY=1");
}

TEST(ServiceManager, WhereThereIsNoneNothingHappens) {
  ::unsetenv("NOTIFY_SOCKET");
  notify_manager("READY=1");
  ::setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
  notify_manager("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace turnstile
