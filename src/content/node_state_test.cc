// Which databases of a node are read.
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
  set_version(state, 2);
  const auto opened = NodeState::open(state);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("version 2 and this program knows 1"));
  EXPECT_FALSE(NodeState::open_to_look(state));
}

TEST(NodeState, HasAnIdOfItsOwnThatARestartKeeps) {
  const TestDirectory directory;
  const std::string id = (*NodeState::open(directory / "a"))->id();
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ((*NodeState::open(directory / "a"))->id(), id);
  EXPECT_NE((*NodeState::open(directory / "b"))->id(), id);
}

}  // namespace
}  // namespace turnstile::content
