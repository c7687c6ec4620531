// Which databases of a node are read, and what is still written when the disk is full.
#include "content/node_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "content/test_directory.h"
#include "refcount/sqlite_connection.h"

namespace turnstile::content {
namespace {

using testing::HasSubstr;

void set_version(const std::string& directory, int version) {
  const auto database = refcount::SqliteConnection::open(directory + "/node.db", std::chrono::seconds(5));
  ASSERT_TRUE(database);
  ASSERT_TRUE((*database)->execute(fmt::format("PRAGMA user_version = {}", version)));
}

TEST(NodeStateVersion, ADatabaseWithoutANumberIsReadAndALaterOneIsRefused) {
  const TestDirectory directory;
  const std::string state = directory / "state";
  ASSERT_TRUE(NodeState::open(state));
  set_version(state, 0);  // as older plugins left it
  ASSERT_TRUE(NodeState::open(state));
  set_version(state, 1);
  ASSERT_TRUE(NodeState::open(state));
  set_version(state, 3);
  const auto opened = NodeState::open(state);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("version 3 and this program knows 2"));
  EXPECT_FALSE(NodeState::open_to_look(state));
}

TEST(NodeState, ARestartKeepsWhetherTheServerMayHaveBeenToldOfAnEnd) {
  const TestDirectory directory;
  const Digest untold = digest_of("untold"), told = digest_of("told");
  {
    const auto state = NodeState::open(directory / "state");
    for (const Digest& digest : {untold, told}) ASSERT_TRUE((*state)->note(digest));
    ASSERT_TRUE((*state)->set_may_be_told(told, true));
  }
  {
    const auto state = NodeState::open(directory / "state");
    EXPECT_EQ((*state)->in_stage(Stage::leaving).size(), 2u);
    EXPECT_FALSE((*state)->may_be_told(untold));
    EXPECT_TRUE((*state)->may_be_told(told));
    ASSERT_TRUE((*state)->set_may_be_told(told, false));
  }
  EXPECT_FALSE((*NodeState::open(directory / "state"))->may_be_told(told));
}

TEST(NodeState, OfALineOfVersion1TheServerMayHaveBeenTold) {
  const TestDirectory directory;
  const Digest digest = digest_of("a blob");
  ASSERT_TRUE((*NodeState::open(directory / "state"))->note(digest));
  {
    const auto database =
        refcount::SqliteConnection::open(directory / "state/node.db", std::chrono::seconds(5));
    ASSERT_TRUE((*database)->execute("UPDATE blobs SET leaving = 1"));
  }
  set_version(directory / "state", 1);
  const auto state = NodeState::open(directory / "state");
  ASSERT_TRUE(state);
  EXPECT_EQ((*state)->stage_of(digest), Stage::leaving);
  EXPECT_TRUE((*state)->may_be_told(digest));
}

TEST(NodeState, HasAnIdOfItsOwnThatARestartKeeps) {
  const TestDirectory directory;
  const std::string id = (*NodeState::open(directory / "a"))->id();
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ((*NodeState::open(directory / "a"))->id(), id);
  EXPECT_NE((*NodeState::open(directory / "b"))->id(), id);
}

BlobInfo info_of(const std::string& bytes) {
  return {digest_of(bytes), int64_t(bytes.size()), Timestamp::now(), Timestamp::now(), {}};
}

TEST(NodeState, OnAFullDiskPullsLeaveTheRoomThatIsKeptForRemovals) {
  const TestDirectory directory;
  const SmallDisk disk(directory / "disk");
  if (!disk.is_there()) GTEST_SKIP() << "mounting is not permitted here";
  const std::string path = directory / "disk/state";
  const auto state = NodeState::open(path);
  ASSERT_TRUE(state);
  const BlobInfo image = info_of("image");
  ASSERT_TRUE((*state)->add(image));
  disk.fill();
  const std::string reserve = path + "/reserve";
  // Until the space that the files of the database have already is used up, too.
  Outcome<bool> noted = true;
  for (int i = 0; i < 2'000 && noted; ++i) noted = (*state)->note(digest_of(std::to_string(i)));
  ASSERT_FALSE(noted);
  EXPECT_EQ(noted.error().code, ErrorClass::resource_exhausted);
  EXPECT_FALSE((*state)->add(info_of("another")));
  const auto label = [](Labels& labels) -> Outcome<void> {
    labels["key"] = std::string(4000, 'v');
    return {};
  };
  EXPECT_FALSE((*state)->update(image.digest, label));
  EXPECT_TRUE(std::filesystem::exists(reserve));

  const Outcome<bool> removed = (*state)->move(image.digest, Stage::in_use, Stage::leaving);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(std::filesystem::exists(reserve));
  EXPECT_TRUE((*state)->forget(image.digest));
}

}  // namespace
}  // namespace turnstile::content
