// The rules as a user of the fake meets them; the rules themselves are tested with the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/test_waiter.h"

namespace turnstile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FakeServer, OneAcquiresAndTheOtherWaitsAndSkipsAfterSuccess) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b");
  auto held = a.lock(pull("layer"));
  ASSERT_TRUE(held && held->acquired());
  auto waiting = wait_in_queue(b, pull("layer"));
  const auto released = held->hold.release(WorkResult::succeeded());
  ASSERT_TRUE(released);
  EXPECT_THAT(released->waiters, ElementsAre("node-b"));
  const auto result = waiting.get();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->skipped());
}

TEST(FakeServer, TheOtherTakesOverAfterAFailureAndIsToldWhy) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b");
  auto held = a.lock(pull("layer"));
  ASSERT_TRUE(held && held->acquired());
  auto waiting = wait_in_queue(b, pull("layer"));
  ASSERT_TRUE(held->hold.release(WorkResult::failed("disk full")));
  const auto result = waiting.get();
  ASSERT_TRUE(result && result->acquired());
  EXPECT_EQ(result->hold.attempt(), 2u);
  EXPECT_EQ(result->hold.previous_error(), "disk full");
  EXPECT_GT(result->hold.token(), held->hold.token());
}

TEST(FakeServer, EveryWayOfWaitingGetsItsTurn) {
  for (const WaitBy way : {WaitBy::long_poll, WaitBy::stream, WaitBy::status_poll}) {
    FakeServer server;
    ClientSettings settings;
    settings.wait_by = way;
    settings.status_interval = 1ms;
    LockClient a = server.client("node-a"), b = server.client("node-b", settings);
    auto held = a.lock(pull("layer"));
    auto waiting = wait_in_queue(b, pull("layer"));
    ASSERT_TRUE(held->hold.release(WorkResult::failed("try yourself")));
    const auto result = waiting.get();
    ASSERT_TRUE(result && result->acquired()) << int(way);
  }
}

TEST(FakeServer, ADeadlineAndAStopTokenEndAWait) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b");
  auto held = a.lock(pull("layer"));
  auto late = b.lock(pull("layer"), LockClient::Clock::now() + 20ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::timed_out);
  std::stop_source stop;
  auto waiting = wait_in_queue(b, pull("layer"), stop.get_token());
  stop.request_stop();
  const auto stopped = waiting.get();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(a.status("pull", "layer")->queue_length, 0u);
}

TEST(FakeServer, KeepsReferences) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b");
  ASSERT_TRUE(a.lock(pull("layer"))->hold.release(WorkResult::succeeded()));
  EXPECT_TRUE(b.lock(pull("layer"))->skipped());
  EXPECT_THAT(a.references("layer")->nodes, ElementsAre("node-a", "node-b"));
  LockRequest removal = pull("layer");
  removal.operation = operations::kDelete;
  const auto refused = a.try_lock(removal);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "referenced");
  EXPECT_TRUE(b.release_reference("layer")->changed);
  EXPECT_EQ(*a.release_node("node-a"), 1u);
  EXPECT_TRUE(a.try_lock(removal)->acquired());
}

TEST(FakeServer, KeepsNoneWhenToldSo) {
  FakeServer server({.server_keeps_references = false});
  LockClient a = server.client("node-a");
  const auto refused = a.references("layer");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "references_off");
}

TEST(FakeServer, AnswersABatchInOrder) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b");
  auto second = b.try_lock(pull("2"));
  auto results = a.try_lock_all({pull("1"), pull("2"), pull("3")});
  ASSERT_TRUE(results && results->size() == 3);
  EXPECT_TRUE((*results)[0]->acquired());
  EXPECT_EQ((*results)[1].error().code, ErrorCode::busy);
  EXPECT_TRUE((*results)[2]->acquired());
  std::vector<Hold> holds;
  holds.push_back(std::move((*results)[0]->hold));
  holds.push_back(std::move((*results)[2]->hold));
  const auto released = a.release_all(holds, WorkResult::succeeded());
  ASSERT_TRUE(released);
  EXPECT_TRUE((*released)[0] && (*released)[1]);
}

TEST(FakeServer, ShowsAndBreaksHolds) {
  FakeServer server;
  LockClient a = server.client("node-a"), admin = server.client("admin");
  auto held = a.lock(pull("layer"));
  EXPECT_EQ(admin.list()->lanes.size(), 1u);
  EXPECT_EQ(admin.status("pull", "layer")->holder->node_id, "node-a");
  EXPECT_EQ(*admin.break_hold("pull", "layer", "maintenance"), "node-a");
  EXPECT_EQ(held->hold.renew().error().code, ErrorCode::lost);
  EXPECT_THAT(*admin.version(), HasSubstr("\"fake\":true"));
}

TEST(FakeServer, ASubscriberSeesGrantedAndCompletedAndCanGoOnLater) {
  FakeServer server;
  LockClient a = server.client("node-a");
  std::promise<std::string> granted, completed;
  SubscribeRequest lane = all_events();
  lane.operation = "pull";
  lane.resource = "layer";
  {
    auto subscription = a.subscribe(lane, [&](const Event& event) {
      if (event.event == "granted") granted.set_value(event.id);
      if (event.event == "completed") completed.set_value(event.node_id);
    });
    auto other = a.lock(pull("another layer"));
    auto held = a.lock(pull("layer"));
    lane.after = granted.get_future().get();
    ASSERT_TRUE(held->hold.release(WorkResult::succeeded()));
    EXPECT_EQ(completed.get_future().get(), "node-a");
  }
  std::promise<std::string> missed;
  auto subscription = a.subscribe(lane, [&](const Event& event) { missed.set_value(event.event); });
  EXPECT_EQ(missed.get_future().get(), "completed");
}

TEST(FakeServer, ASubscriberWhoComesBackFromAnUnknownPlaceIsToldSo) {
  FakeServer server;
  LockClient a = server.client("node-a");
  SubscribeRequest request;
  request.after = "5";
  std::promise<std::string> first;
  auto subscription = a.subscribe(request, [&](const Event& event) { first.set_value(event.event); });
  EXPECT_EQ(first.get_future().get(), "reset");
}

}  // namespace
}  // namespace turnstile
