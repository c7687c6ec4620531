// Holes of an earlier prototype in liveness, as far as the engine can show them: L1 to L5, L12 to L14, L18.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Regression, L1_ACrashedHolderWithALeaseIsReleasedAtItsEnd) {
  TestEngine t;
  t.lock(Ask("pull", "r", "crashes").lease(2000));
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.pass(2000);
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
}

TEST(Regression, L1_ACrashedHolderWithABondIsReleasedAfterTheGrace) {
  TestEngine t;
  t.lock(Ask("pull", "r", "crashes").monitor(1));
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.close_bond("pull", "r", "crashes", 1);
  t.pass(3000);
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
}

TEST(Regression, L1_ACrashedHolderOfTheSimplestKindIsReleasedAtTheLatestByMaxHold) {
  TestEngine t;
  t.lock("pull", "r", "crashes");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.pass(3'600'000);
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
}

TEST(Regression, L2_AWaiterWhoseBondBrokeDoesNotInheritTheLock) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "gone").poll(2));
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.break_poll("pull", "r", "gone", 2);
  t.pass(3000);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n3"));
  t.fail("pull", "r", "n1", "x");
  EXPECT_EQ(t.wake(3).state, LockState::acquired);
}

TEST(Regression, L2_AGrantThatAGoneWaiterDoesNotClaimPassesOn) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  for (int i = 0; i < 5; ++i) t.lock("pull", "r", fmt::format("gone{}", i));
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.fail("pull", "r", "n1", "x");
  t.pass(5 * 10'000);
  EXPECT_EQ(t.wake(3).state, LockState::acquired);
}

TEST(Regression, L3_ARetryAddsNoSecondEntry) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(t.lock("pull", "r", "n2").position, 1u);
    EXPECT_EQ(t.lock("pull", "r", "n3").position, 2u);
  }
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2", "n3"));
  t.fail("pull", "r", "n1", "x");
  t.fail("pull", "r", "n2", "x");
  EXPECT_EQ(t.holder("pull", "r"), "n3") << "n2 is not granted twice";
}

TEST(Regression, L4_SuccessLeavesNoQueueBehindAndEachWaiterGotOneOutcome) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  for (uint64_t i = 2; i < 100; ++i) t.lock(Ask("pull", "r", fmt::format("n{}", i)).poll(i));
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
  EXPECT_THAT(t.wakes, SizeIs(98));
  for (uint64_t i = 2; i < 100; ++i) EXPECT_EQ(t.wake(i).state, LockState::skipped);
  // A later failure has no ghost to hand the lock to.
  t.pass(300'000);
  t.release_node("n1");
  for (uint64_t i = 2; i < 100; ++i) t.release_node(fmt::format("n{}", i));
  t.lock("pull", "r", "later");
  t.take_events();
  t.fail("pull", "r", "later", "x");
  EXPECT_THAT(t.take_events(), ElementsAre("failed pull later: x"));
  EXPECT_THAT(t.wakes, SizeIs(98));
}

TEST(Regression, L5_AGrantBeforeTheSubscriptionIsStillTold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x");
  const auto told = t.subscribe("pull", "r", "n2", 2);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(text_of(told[0]), "granted pull n2");
}

TEST(Regression, L5_ACompletionBeforeTheSubscriptionIsStillTold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  const auto told = t.subscribe("pull", "r", "n2", 2);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(text_of(told[0]), "completed pull n1");
}

TEST(Regression, L5_AFailureForGoodOrARefusalBeforeTheSubscriptionIsStillTold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail_permanently("pull", "r", "n1", "404");
  auto told = t.subscribe("pull", "r", "n2", 2);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(text_of(told[0]), "failed pull n1: 404");
  t.lock(Ask("update", "s", "n1").whole_resource());
  t.lock("delete", "s", "n2");
  t.add_reference("s", "n3");
  t.succeed("update", "s", "n1");
  told = t.subscribe("delete", "s", "n2", 2);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].kind, EventKind::refused);
}

TEST(Regression, L12_ACancelledCallerLeavesNoEntryBehind) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  EXPECT_TRUE(t.cancel("pull", "r", "n2"));
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
  t.fail("pull", "r", "n1", "x");
  EXPECT_EQ(t.holder("pull", "r"), "");
  EXPECT_EQ(t.wake(2).state, LockState::cancelled);
}

TEST(Regression, L12_ACallerThatCancelsAfterItsGrantDoesNotKeepTheLock) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x");
  EXPECT_TRUE(t.cancel("pull", "r", "n2"));
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(Regression, L13_AFailureWithNobodyWaitingIsAnEvent) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.take_events();
  t.fail("pull", "r", "n1", "disk full");
  EXPECT_THAT(t.take_events(), ElementsAre("failed pull n1: disk full"));
}

TEST(Regression, L14_FailedAndGrantedAreTwoEventsAndTheErrorReachesEverybody) {
  TestEngine t;
  const Token first = t.lock("pull", "r", "n1").token;
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.fail("pull", "r", "n1", "disk full");
  const auto& events = t.sink.log.events;
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[1].kind, EventKind::failed);
  EXPECT_EQ(events[1].who.node.text, "n1");
  EXPECT_EQ(events[1].token, first);
  EXPECT_EQ(events[1].error, "disk full");
  EXPECT_EQ(events[2].kind, EventKind::granted);
  EXPECT_EQ(events[2].who.node.text, "n2");
  EXPECT_GT(events[2].token, first);
  EXPECT_EQ(events[2].error, "") << "a grant is no error";
  EXPECT_EQ(t.wake(2).previous_error, "disk full");
}

TEST(Regression, L18_KeysThatComeAndGoTakeNoMemory) {
  constexpr int kKeys = 200'000;
  struct NoSink : CommitSink {
    uint64_t commit(Effects&) override { return 1; }
    uint64_t latest() const override { return 1; }
    bool wants_records() const override { return false; }
  } sink;
  Engine engine(EngineSettings{}, sink, Token::none);
  Effects out;
  Time now{ms(1)};
  for (int i = 0; i < kKeys; ++i) {
    const std::string resource = fmt::format("sha256:{:064x}", i);
    const char* operation = i % 3 == 0 ? "pull" : i % 3 == 1 ? "delete" : "job";
    for (const char* node : {"n1", "n2"}) {
      out.clear();
      engine.lock(Ask(operation, resource, node).command, now, out);
    }
    out.clear();
    const bool success = i % 2 == 0;
    engine.unlock({lane_of(operation, resource), requester("n1"), Token::none, success, "x", i % 4 == 1}, now,
                  out);
    now += std::chrono::microseconds(10);
  }
  EXPECT_EQ(engine.resource_count(), size_t(kKeys));
  out.clear();
  for (const char* node : {"n1", "n2"}) {
    ReleaseNodeWalk walk((NodeId(node)));
    EXPECT_TRUE(engine.release_node_some(walk, SIZE_MAX, now, out, [](Effects&) {}));
  }
  while (engine.next_deadline() != kNever) {
    now = std::max(now + ms(100), engine.next_deadline());
    while (engine.expire(now, out, 1'000, [](Effects&) {}) > 0) {
    }
  }
  EXPECT_EQ(engine.resource_count(), 0u);
}

}  // namespace
}  // namespace turnstile
