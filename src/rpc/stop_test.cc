// The end of a server: calls that end, calls that do not, and answers that are still on their way.
#include <future>

#include "rpc/test_server.h"

namespace turnstile::rpc {
namespace {

using std::chrono::seconds;

class StopTest : public ServerTest {
 protected:
  std::future<void> stop_in_the_background(seconds grace) {
    return std::async(std::launch::async, [this, grace] { server_->stop(grace); });
  }
};

TEST_F(StopTest, WaitsForACallThatEnds) {
  TestClient client(socket_);
  const int32_t call = client.begin("/t/Wait");
  client.end(call);
  ASSERT_TRUE(events_.await("waiting"));
  std::future<void> stopped = stop_in_the_background(seconds(30));
  ASSERT_TRUE(client.await([&] { return client.was_told_to_go(); }));
  EXPECT_FALSE(connect_to(socket_).is_open());
  events_.add("open");
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), 0);
  stopped.get();
}

TEST_F(StopTest, CancelsCallsThatDoNotEnd) {
  TestClient client(socket_, {.window = 1000, .grants = false});
  client.begin("/t/ReadAll");
  client.begin("/t/Flood");
  ASSERT_TRUE(events_.await("reading"));
  ASSERT_TRUE(events_.await("written"));
  server_->stop(std::chrono::milliseconds(1));
  EXPECT_EQ(events_.count("reading ended"), 1u);
  EXPECT_EQ(events_.count("flood ended"), 1u);
}

TEST_F(StopTest, WithoutCallsItIsImmediateAndMayBeRepeated) {
  TestClient client(socket_);
  ASSERT_EQ(client.call("/t/Echo", "x").status(), 0);
  const auto began = std::chrono::steady_clock::now();
  server_->stop(seconds(60));
  server_->stop(seconds(60));
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(30));
  client.await([] { return false; });
  EXPECT_TRUE(client.gone());
  EXPECT_TRUE(client.was_told_to_go());
}

TEST_F(StopTest, AnAnswerThatIsStillOnItsWayArrives) {
  TestClient client(socket_, {.window = 1 << 30});
  client.stop_reading();
  const int32_t call = client.begin("/t/Large");
  client.send(call, framed("1000000"));
  client.end(call);
  ASSERT_TRUE(events_.await("large"));
  std::future<void> stopped = stop_in_the_background(seconds(30));
  // It has begun to stop when nobody is let in any more.
  const auto give_up = std::chrono::steady_clock::now() + seconds(30);
  while (connect_to(socket_).is_open()) ASSERT_LT(std::chrono::steady_clock::now(), give_up);
  EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  client.read_again();
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), 0);
  EXPECT_EQ(client.answer(call).bytes.size(), 1'000'000u + 8 + 5);
  stopped.get();
}

}  // namespace
}  // namespace turnstile::rpc
