// The file storage against its disk: damage, no room, no permission, failed syncs, a second opener.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <latch>
#include <thread>

#include "refcount/test_support.h"
#include "refcount/test_syncs.h"

namespace turnstile::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// What opening the file says; empty: it opens.
std::string refusal_of_file(const std::string& path) {
  const auto opened = open_file_storage(path);
  if (opened) return "";
  EXPECT_EQ(opened.error().code, ErrorCode::storage);
  return opened.error().message;
}

class FileStorage : public ::testing::Test {
 protected:
  std::shared_ptr<RefCountStorage> open() { return must_open("file", path_); }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "references";
};

TEST_F(FileStorage, ASecondOpenerIsToldWhichFileAndWhatToDo) {
  const auto first = open();
  const std::string told = refusal_of_file(path_);
  EXPECT_THAT(told, HasSubstr(path_ + ".lock"));
  EXPECT_THAT(told, HasSubstr("stop it first"));
}

TEST_F(FileStorage, AnotherNameOfTheFileIsTheSameFile) {
  const auto first = open();
  ASSERT_TRUE(first->set("r", {{"a"}}));
  std::filesystem::create_symlink(path_, directory_ / "link");
  EXPECT_THAT(refusal_of_file(directory_ / "link"), HasSubstr("another process"));
}

TEST_F(FileStorage, EveryDamagedByteRefusesToOpenSaysWhereAndIsLeftAlone) {
  ASSERT_TRUE(open()->set("layer", {{"n1", "n2"}}));
  const std::string good = read_all(path_);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = char(~bad[at]);
    write_all(path_, bad);
    EXPECT_THAT(refusal_of_file(path_), HasSubstr("at byte ")) << at;
    EXPECT_EQ(read_all(path_), bad);
  }
  for (size_t size = 0; size < good.size(); ++size) {
    write_all(path_, good.substr(0, size));
    EXPECT_THAT(refusal_of_file(path_), HasSubstr("at byte ")) << size;
  }
}

TEST_F(FileStorage, LeftOverTemporaryFilesAreRemovedAndNeverRead) {
  ASSERT_TRUE(open()->set("r", {{"a"}}));
  write_all(path_ + ".tmp", "half a file");
  EXPECT_EQ(nodes_of(*open(), "r"), Nodes{"a"});
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(FileStorage, ADirectoryThatIsMissingOrNotWritableIsOneClearLine) {
  EXPECT_THAT(refusal_of_file(directory_ / "missing/references"), HasSubstr("No such file or directory"));
  if (::geteuid() != 0) {
    std::filesystem::permissions(directory_.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    EXPECT_THAT(refusal_of_file(path_), HasSubstr("Permission denied"));
    std::filesystem::permissions(directory_.path(), std::filesystem::perms::owner_all);
    return;
  }
  // Everything is writable to root, so be somebody else meanwhile.
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string told = refusal_of_file(path_);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(told, HasSubstr("Permission denied"));
}

// Files of this process may not grow beyond a size while this lives: a write fails as on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t most) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = most;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallFiles() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(FileStorage, AFailedWriteChangesNothingAndTheNextMaySucceed) {
  const auto storage = open();
  ASSERT_TRUE(storage->set("r", {{"a"}}));
  {
    const SmallFiles limit(100);
    const auto failed = storage->set("big", {{std::string(1000, 'n')}});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::storage);
    EXPECT_THAT(failed.error().message, HasSubstr(path_ + ".tmp"));
  }
  EXPECT_THAT(resources_of(*storage), ElementsAre("r"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
  EXPECT_TRUE(storage->set("s", {{"b"}}));
}

TEST_F(FileStorage, AFullDiskIsAnErrorAndWhatWasThereStays) {
  const std::string disk = directory_ / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "mounting is not permitted here";
  {
    const auto storage = must_open("file", disk + "/references");
    ASSERT_TRUE(storage->set("r", {{"a"}}));
    const auto failed = storage->set("big", {{std::string(200'000, 'n')}});
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message, HasSubstr("No space left on device"));
    EXPECT_TRUE(storage->set("s", {{"b"}}));
  }
  EXPECT_THAT(resources_of(*must_open("file", disk + "/references")), ElementsAre("r", "s"));
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

// The first sync of a commit is the file's, the second the directory's.
TEST_F(FileStorage, AfterAFailedSyncNothingIsWrittenOrSyncedAnyMoreAndReadsGoOn) {
  for (int nth : {1, 2}) {
    const auto storage = open();
    ASSERT_TRUE(storage->set("r", {{"a"}}));
    {
      const FailingSync failing(nth);
      const auto failed = storage->set("r", {{"b"}});
      ASSERT_FALSE(failed);
      ASSERT_TRUE(failing.has_failed());
      EXPECT_EQ(failed.error().code, ErrorCode::storage);
    }
    const int syncs_before = syncs().calls;
    const auto refused = storage->set("s", {{"c"}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::storage);
    EXPECT_THAT(refused.error().message, HasSubstr("not written to any more"));
    EXPECT_EQ(syncs().calls, syncs_before);
    EXPECT_EQ(nodes_of(*storage, "r"), Nodes{"a"});
  }
  // The directory's sync failed after the rename: it is one of the two, and whole.
  EXPECT_THAT(nodes_of(*open(), "r"), ::testing::AnyOf(Nodes{"a"}, Nodes{"b"}));
}

TEST_F(FileStorage, WhatChangesNothingIsNotWritten) {
  const auto storage = open();
  ASSERT_TRUE(storage->set("r", {{"a"}}));
  const int syncs_before = syncs().calls;
  ASSERT_TRUE(storage->set("r", {{"a"}}));
  ASSERT_TRUE(storage->erase("never there"));
  EXPECT_EQ(syncs().calls, syncs_before);
}

// The first commit is held up in its change until the others are queued; they must then share few commits.
TEST_F(FileStorage, UpdatesThatWaitShareOneCommit) {
  constexpr int kWaiting = 200;
  const auto storage = open();
  std::latch begun(1), go_on(1), asked(kWaiting);
  std::jthread first([&] {
    EXPECT_TRUE(storage->update("first", [&](ReferenceCount& count) {
      begun.count_down();
      go_on.wait();
      return count.nodes.insert("n").second;
    }));
  });
  begun.wait();
  const int syncs_before = syncs().calls;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kWaiting; ++i)
    threads.emplace_back([&, i] {
      asked.count_down();
      EXPECT_TRUE(storage->set("r" + std::to_string(i), {{"n"}}));
    });
  asked.wait();
  go_on.count_down();
  threads.clear();
  first.join();
  EXPECT_EQ(resources_of(*storage).size(), size_t(kWaiting) + 1);
  // Two a commit. Threads that are late to queue may need some more commits; one each would be 400.
  EXPECT_LE(syncs().calls - syncs_before, kWaiting / 2);
}

}  // namespace
}  // namespace turnstile::testing
