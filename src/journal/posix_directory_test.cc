// The file journal on a real file system: modes, the lock, and a life after a restart.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

class RealDirectory : public ::testing::Test {
 protected:
  RealDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "turnstile-journal-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~RealDirectory() override { std::filesystem::remove_all(root_); }

  static unsigned mode_of(const std::filesystem::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  std::filesystem::path root_;
};

TEST_F(RealDirectory, S31_WhatWasDurableIsThereAfterARestart) {
  for (uint64_t life = 0; life < 3; ++life) {
    auto opened = open_file_journal(root_ / "journal", small_options());
    ASSERT_TRUE(opened) << opened.error().message;
    DrivenJournal journal(std::move(*opened));
    ASSERT_EQ(*journal.recover(), world_after(life * 40));
    EXPECT_EQ(journal.report.latest, at(int64_t(life) * 40 * 1000));
    journal.start();
    for (uint64_t n = life * 40 + 1; n <= life * 40 + 40; ++n) ASSERT_TRUE(journal.commit(n));
    if (life == 1) {
      const World world = world_after(80);
      ASSERT_TRUE(journal->snapshot([&](const Journal::Write& write) { world.dump(write); }));
    }
  }
}

TEST_F(RealDirectory, FilesAndDirectoryAreForTheOwnerOnly) {
  DrivenJournal journal(std::move(*open_file_journal(root_ / "journal/", small_options())));
  ASSERT_TRUE(journal.recover());
  journal.start();
  ASSERT_TRUE(journal->snapshot([](const Journal::Write& write) { write(World::set("r", 1)); }));
  EXPECT_EQ(mode_of(root_ / "journal"), 0700u);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root_ / "journal")) {
    EXPECT_EQ(mode_of(entry.path()), 0600u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 3);  // LOCK, log, snapshot
}

TEST_F(RealDirectory, ADirectoryThatAnotherServerHasOpenIsAClearError) {
  auto first = open_file_journal(root_ / "journal", {});
  ASSERT_TRUE(first);
  const auto second = open_file_journal(root_ / "journal", {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another server has the journal"), std::string::npos);
  EXPECT_NE(second.error().message.find((root_ / "journal" / "LOCK").string()), std::string::npos);
  first->reset();
  EXPECT_TRUE(open_file_journal(root_ / "journal", {}));
}

TEST_F(RealDirectory, ADirectoryThatCannotBeMadeIsAnErrorThatNamesIt) {
  const auto opened = open_file_journal(root_ / "no" / "such" / "parent", {});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("no/such/parent"), std::string::npos);
}

}  // namespace
}  // namespace turnstile::testing
