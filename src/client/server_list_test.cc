// Whom several calls at the same time make of the servers they ask.
#include "client/server_list.h"

#include <gtest/gtest.h>

namespace turnstile::client {
namespace {

using Follow = ServerList::Follow;

struct ServerListTest : testing::Test {
  // One call took too long there and has moved on, as another, which was under way, is answered.
  void not_answered(const std::string& server) {
    list.suspect(server, std::chrono::seconds(1), now);
    list.move_on_from(server, now);
  }
  const Steady::time_point now{};
  ServerList list{ClientSettings{.servers = {"http://a", "http://b"}}};
};

TEST_F(ServerListTest, AnAnswerLiftsTheSuspicionAlsoFromTheServerThatLedAllTheTime) {
  list.answered("http://a");
  not_answered("http://a");
  EXPECT_EQ(list.current(), "http://b");
  EXPECT_EQ(list.follow("http://b", "http://a", now), Follow::suspected);
  list.answered("http://a");
  EXPECT_EQ(list.current(), "http://a") << "who answered last is asked first";
  EXPECT_EQ(list.follow("http://b", "http://a", now), Follow::yes);
}

TEST_F(ServerListTest, SoItDoesFromALeaderThatIsNotInTheSettings) {
  ASSERT_EQ(list.follow("http://a", "http://stranger", now), Follow::yes);
  list.answered("http://stranger");
  not_answered("http://stranger");
  EXPECT_EQ(list.current(), "http://a");
  list.answered("http://stranger");
  EXPECT_EQ(list.current(), "http://stranger");
}

}  // namespace
}  // namespace turnstile::client
