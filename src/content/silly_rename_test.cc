// A store on a file system like NFS, which knows no renameat2() flags, and which removes a file that is open
// only by renaming it within its directory. Seen on a real one; here two calls of the system's stand in for
// it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "content/test_directory.h"
#include "content/writer.h"

namespace turnstile::content {
namespace {

bool like_nfs = false;
int renamed = 0;

// Whether this process has it open.
bool is_open(const struct stat& file) {
  for (int fd = 3; fd < 256; ++fd) {
    struct stat other;
    if (::fstat(fd, &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino) return true;
  }
  return false;
}

}  // namespace
}  // namespace turnstile::content

// Those of the C library are not used in this program then.
extern "C" int renameat2(int from, const char* name, int to, const char* new_name, unsigned flags) {
  if (turnstile::content::like_nfs && flags != 0) {
    errno = EINVAL;
    return -1;
  }
  return int(::syscall(SYS_renameat2, from, name, to, new_name, flags));
}

extern "C" int unlinkat(int directory, const char* name, int flags) noexcept {
  using namespace turnstile::content;
  struct stat file;
  if (like_nfs && flags == 0 && ::fstatat(directory, name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
      is_open(file)) {
    if (std::string_view(name).starts_with(".nfs")) {
      errno = EBUSY;
      return -1;
    }
    const std::string silly = fmt::format(".nfs{:08}", ++renamed);
    return int(::syscall(SYS_renameat2, directory, name, directory, silly.c_str(), 0));
  }
  return int(::syscall(SYS_unlinkat, directory, name, flags));
}

namespace turnstile::content {
namespace {

class OnNfs : public testing::Test {
 protected:
  void SetUp() override { like_nfs = true; }
  void TearDown() override { like_nfs = false; }

  std::unique_ptr<Writer> written(const std::string& ref, const std::string& bytes) {
    Outcome<std::unique_ptr<Writer>> writer = Writer::open(store_, locks_, ref, 0, "");
    EXPECT_TRUE(writer && (*writer)->write(0, bytes));
    return std::move(*writer);
  }
  bool has_ingests() const { return !std::filesystem::is_empty(directory_ / "root/ingest/node-a"); }
  // Its own, and this node's second one.
  static constexpr nlink_t kNames = 2;
  nlink_t names_of(const Digest& digest) const {
    struct stat file{};
    EXPECT_EQ(::stat(blob_path(directory_ / "root", digest).c_str(), &file), 0);
    return file.st_nlink;
  }

  TestDirectory directory_;
  BlobStore store_ = open_blobs(directory_ / "root");
  KeyLocks locks_;
};

TEST_F(OnNfs, WhatIsPublishedHasNoNameLeftInTheIngest) {
  auto writer = written("r", "abc");
  ASSERT_TRUE(writer->publish(*writer->verify(0, std::nullopt)));
  EXPECT_EQ(file_text(blob_path(directory_ / "root", digest_of("abc"))), "abc");
  EXPECT_FALSE(has_ingests());
  EXPECT_EQ(names_of(digest_of("abc")), kNames);
}

TEST_F(OnNfs, WhoIsTooLateReplacesNothingAndLeavesNothing) {
  auto writer = written("first", "abc");
  auto late = written("second", "abc");
  ASSERT_TRUE(writer->publish(*writer->verify(0, std::nullopt)));
  const Outcome<void> published = late->publish(*late->verify(0, std::nullopt));
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, ErrorClass::already_exists);
  EXPECT_FALSE(has_ingests());
}

TEST_F(OnNfs, WhatIsDroppedLeavesNothing) {
  auto writer = written("r", "abc");
  const Outcome<void> dropped = writer->drop();
  EXPECT_TRUE(dropped) << dropped.error().message;
  EXPECT_FALSE(has_ingests());
}

// A crash between the two: the link is made, and the ingest still has its name.
TEST_F(OnNfs, AnIngestThatIsPublishedAlreadyIsNeverWrittenTo) {
  written("r", "abc")->close();
  const std::string ingest =
      directory_ / ("root/ingest/node-a/" + std::string(digest_of("r").hex()) + "/data");
  std::filesystem::create_hard_link(ingest, blob_path(directory_ / "root", digest_of("abc")));
  auto writer = written("r", "XYZ");
  EXPECT_EQ(file_text(blob_path(directory_ / "root", digest_of("abc"))), "abc");
}

}  // namespace
}  // namespace turnstile::content
