// Time that passes by advance(), and a server that goes away for a while or for ever.
#include <gtest/gtest.h>

#include "fake/test_waiter.h"

namespace turnstile {
namespace {

// Renewed by itself only after a third of it: by then the test is over.
LockRequest pull_with_lease(std::chrono::milliseconds lease) {
  LockRequest request = pull("layer");
  request.lease = lease;
  return request;
}

TEST(FakeTime, ALeaseRunsOutAndTheNextInLineGoesOn) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b");
  auto held = a.lock(pull_with_lease(1h));
  auto waiting = wait_in_queue(b, pull("layer"));
  server.advance(1h - 1min);
  EXPECT_EQ(b.status("pull", "layer")->holder->node_id, "node-a");
  server.advance(1min);
  const auto result = waiting.get();
  ASSERT_TRUE(result && result->acquired());
  EXPECT_EQ(result->hold.previous_error(), "lease");
  EXPECT_EQ(held->hold.renew().error().code, ErrorCode::lost);
  EXPECT_EQ(held->hold.state(), HoldState::lost);
}

TEST(FakeTime, ARenewalMovesTheEnd) {
  FakeServer server;
  LockClient a = server.client("node-a");
  auto held = a.lock(pull_with_lease(1h));
  server.advance(40min);
  ASSERT_TRUE(held->hold.renew());
  server.advance(40min);
  EXPECT_TRUE(held->hold.renew());
}

TEST(FakeTime, AKeptCompletionIsForgotten) {
  FakeServer server({.server_keeps_references = false});
  LockClient a = server.client("node-a");
  ASSERT_TRUE(a.lock(pull("layer"))->hold.release(WorkResult::succeeded()));
  server.advance(4min);
  EXPECT_TRUE(a.lock(pull("layer"))->skipped());
  server.advance(2min);
  EXPECT_TRUE(a.lock(pull("layer"))->acquired());
}

TEST(FakeTime, AHoldIsLostWhenRenewalsCannotPass) {
  FakeServer server;
  LockClient a = server.client("node-a", impatient()), b = server.client("node-b");
  auto held = a.lock(pull_with_lease(300ms));
  ASSERT_TRUE(held && held->acquired());
  std::promise<void> lost;
  held->hold.on_change([&](HoldState state) {
    if (state == HoldState::lost) lost.set_value();
  });
  server.set_reachable(false);
  server.advance(1s);
  lost.get_future().wait();
  EXPECT_LE(held->hold.believed_until(), Hold::Clock::now());
  server.set_reachable(true);
  EXPECT_TRUE(b.lock(pull("layer"))->acquired());
  EXPECT_EQ(held->hold.release(WorkResult::succeeded()).error().code, ErrorCode::lost);
}

TEST(FakeTime, AMonitoredHoldEndsWhenItsConnectionsAreBroken) {
  FakeServer server;
  LockClient a = server.client("node-a", impatient()), b = server.client("node-b");
  LockRequest request = pull_with_lease(0ms);
  request.monitor = true;
  auto held = a.lock(request);
  server.advance(30s);  // it lives by the client's connection
  EXPECT_EQ(b.status("pull", "layer")->holder->node_id, "node-a");
  server.set_reachable(false);
  server.advance(4s);
  server.set_reachable(true);
  EXPECT_TRUE(b.lock(pull("layer"))->acquired());
}

TEST(FakeTime, AServerThatComesBackKnowsEverything) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b", impatient());
  auto held = a.lock(pull_with_lease(1h));
  auto waiting = wait_in_queue(b, pull("layer"));
  server.set_reachable(false);
  const auto error = b.status("pull", "layer");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, ErrorCode::unavailable);
  server.set_reachable(true);
  ASSERT_TRUE(held->hold.release(WorkResult::succeeded()));
  EXPECT_TRUE(waiting.get()->skipped());
}

TEST(FakeTime, ASubscriptionGoesOnAfterAnAbsence) {
  FakeServer server;
  LockClient a = server.client("node-a"), b = server.client("node-b", impatient());
  std::promise<void> granted, completed;
  auto subscription = b.subscribe(all_events(), [&](const Event& event) {
    if (event.event == "granted") granted.set_value();
    if (event.event == "completed") completed.set_value();
  });
  auto held = a.lock(pull_with_lease(1h));
  granted.get_future().wait();
  server.set_reachable(false);
  server.set_reachable(true);
  ASSERT_TRUE(held->hold.release(WorkResult::succeeded()));
  completed.get_future().wait();
}

TEST(FakeTime, ADestroyedServerIsUnavailable) {
  auto server = std::make_unique<FakeServer>();
  LockClient a = server->client("node-a", impatient()), b = server->client("node-b", impatient());
  auto held = a.lock(pull("layer"));
  auto waiting = wait_in_queue(b, pull("layer"));
  auto subscription = b.subscribe({}, [](const Event&) {});
  server.reset();
  EXPECT_EQ(a.lock(pull("other")).error().code, ErrorCode::unavailable);
  EXPECT_EQ(held->hold.release(WorkResult::succeeded()).error().code, ErrorCode::unavailable);
  // And nobody waits for a server that never comes back.
  EXPECT_EQ(waiting.get().error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace turnstile
