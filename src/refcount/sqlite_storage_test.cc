// The SQLite storage against its world: other processes, other programs' files, no permission, failed syncs.
#include "refcount/sqlite_storage.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "refcount/sqlite_connection.h"
#include "refcount/test_support.h"
#include "refcount/test_syncs.h"

namespace turnstile::testing {
namespace {

using namespace refcount;

using ::testing::HasSubstr;

std::string refusal_of_database(const std::string& path) {
  const auto opened = open_sqlite_storage(path);
  if (opened) return "";
  EXPECT_EQ(opened.error().code, ErrorCode::storage);
  EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
  return opened.error().message;
}

class SqliteStorage : public ::testing::Test {
 protected:
  std::shared_ptr<RefCountStorage> open() { return must_open("sqlite", path_); }
  // What somebody else does to the file.
  void execute(const std::string& sql) {
    auto connection = SqliteConnection::open(path_, kSqliteBusyTimeout);
    ASSERT_TRUE(connection) << connection.error().message;
    const auto done = (*connection)->execute(sql);
    ASSERT_TRUE(done) << done.error().message;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "references.db";
};

TEST_F(SqliteStorage, EveryCommitIsSynced) {
  const auto storage = open();
  for (const char* node : {"a", "b", "c"}) {
    const int before = syncs().calls;
    ASSERT_TRUE(storage->set("r", {{node}}));
    EXPECT_GT(syncs().calls, before);
  }
}

TEST_F(SqliteStorage, TwoOpenersSeeEachOthersReferences) {
  const auto one = open(), other = open();
  ASSERT_TRUE(one->set("r", {{"a"}}));
  ASSERT_TRUE(other->update("r", [](ReferenceCount& count) { return count.nodes.insert("b").second; }));
  EXPECT_EQ(nodes_of(*one, "r"), (Nodes{"a", "b"}));
}

TEST_F(SqliteStorage, ALockThatAnotherProcessKeepsIsAnErrorAfterABoundedTime) {
  using namespace std::chrono_literals;
  auto storage = open_sqlite_storage_waiting(path_, 50ms);
  ASSERT_TRUE(storage);
  auto blocker = SqliteConnection::open(path_, 50ms);
  ASSERT_TRUE((*blocker)->execute("BEGIN IMMEDIATE"));
  const auto failed = (*storage)->set("r", {{"a"}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::storage);
  EXPECT_THAT(failed.error().message, HasSubstr("another process keeps the database " + path_ + " locked"));
  EXPECT_EQ(nodes_of(**storage, "r"), Nodes{});  // reading goes on
  ASSERT_TRUE((*blocker)->execute("ROLLBACK"));
  EXPECT_TRUE((*storage)->set("r", {{"a"}}));
}

TEST_F(SqliteStorage, ANewerSchemaRefusesToOpen) {
  open();
  execute("PRAGMA user_version = 2");
  EXPECT_THAT(refusal_of_database(path_), HasSubstr("version 2"));
}

TEST_F(SqliteStorage, FilesOfOthersAreRefusedAndLeftAlone) {
  execute("CREATE TABLE theirs (x)");
  EXPECT_THAT(refusal_of_database(path_), HasSubstr("another program"));
  const std::string text = directory_ / "notes.txt";
  std::ofstream(text) << std::string(1000, 'x');
  EXPECT_THAT(refusal_of_database(text), HasSubstr("not a SQLite database"));
  EXPECT_EQ(std::filesystem::file_size(text), 1000u);
  EXPECT_THAT(refusal_of_database(directory_.path()), HasSubstr("cannot open"));
  EXPECT_THAT(refusal_of_database(directory_ / "missing/references.db"), HasSubstr("directory must exist"));
}

TEST_F(SqliteStorage, WhatCannotBeWrittenIsOneClearLine) {
  open();
  if (::geteuid() != 0) GTEST_SKIP() << "needs another user to be";
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(path_, std::filesystem::perms(0644));
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string existing = refusal_of_database(path_), fresh = refusal_of_database(directory_ / "new.db");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(existing, HasSubstr("writable"));
  EXPECT_THAT(fresh, HasSubstr("writable"));
}

TEST_F(SqliteStorage, AfterAFailedSyncNothingIsWrittenOrSyncedAnyMoreAndReadsGoOn) {
  auto storage = open();
  ASSERT_TRUE(storage->set("r", {{"a"}}));
  {
    const FailingSync failing(1);
    const auto failed = storage->set("r", {{"b"}});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::storage);
  }
  const int syncs_before = syncs().calls;
  const auto refused = storage->set("s", {{"c"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("not written to any more"));
  EXPECT_EQ(nodes_of(*storage, "r"), Nodes{"a"});
  storage.reset();
  EXPECT_EQ(syncs().calls, syncs_before);
  // The log may hold what could not be synced: it is one of the two.
  EXPECT_THAT(nodes_of(*open(), "r"), ::testing::AnyOf(Nodes{"a"}, Nodes{"b"}));
}

// A checkpoint whose sync fails must not be tried again: the second try would succeed and empty the log.
TEST_F(SqliteStorage, AFailedCheckpointEndsTheWritingAndLosesNothing) {
  auto storage = open();
  ASSERT_TRUE(storage->set("first", {{"n"}}));  // begins the log, which takes more syncs than a commit
  Expected<void> done;
  size_t acknowledged = 1;
  while (acknowledged < 2000) {
    const FailingSync failing(2);  // the first sync is the commit's; a second one is a checkpoint's
    done = storage->set("r" + std::to_string(acknowledged), {{std::string(3000, 'n')}});
    if (!done) break;
    ++acknowledged;
  }
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("not written to any more"));
  storage.reset();
  EXPECT_EQ(resources_of(*open()).size(), acknowledged);
}

}  // namespace
}  // namespace turnstile::testing
