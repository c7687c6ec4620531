// Section 2 of docs/semantics.md, rule S2: whoever asks a second time is recognized, so that a retry after a
// lost answer is harmless.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AskAgain, S2_AHolderGetsTheSameTokenAndNothingHappens) {
  TestEngine t;
  const Token token = t.lock("pull", "r", "n1").token;
  t.take_events();
  const LockAnswer again = t.lock("pull", "r", "n1");
  EXPECT_EQ(again.state, LockState::acquired);
  EXPECT_EQ(again.token, token);
  EXPECT_THAT(t.take_events(), IsEmpty());
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
}

TEST(AskAgain, S2_AttemptAndPreviousErrorAreToldWithEachAcquiredAnswer) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "connection reset");
  for (int i = 0; i < 3; ++i) {
    const LockAnswer answer = t.lock("pull", "r", "n2");
    EXPECT_EQ(answer.attempt, 2u);
    EXPECT_EQ(answer.previous_error, "connection reset");
  }
}

TEST(AskAgain, S2_RestartsTheLease) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(1000));
  t.pass(900);
  t.lock("pull", "r", "n1");
  t.pass(999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.pass(1);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(AskAgain, S2_ANewLeaseAppliesToAHolder) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(1000));
  t.lock(Ask("pull", "r", "n1").lease(5000));
  EXPECT_EQ(t.status("pull", "r").holder->lease, ms(5000));
  t.pass(4999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.pass(1);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(AskAgain, S2_ALeaseCanBeGivenToAPlainHold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n1").lease(1000));
  t.pass(1000);
  EXPECT_THAT(t.take_events(), ElementsAre("granted pull n1", "expired pull n1: lease"));
}

TEST(AskAgain, S2_ANewMonitorAppliesToAHolder) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  EXPECT_TRUE(t.lock(Ask("pull", "r", "n1").monitor(5)).bonded);
  t.close_bond("pull", "r", "n1", 5);
  t.pass(3000);
  EXPECT_EQ(t.last_event().reason, "bond");
}

TEST(AskAgain, S2_MonitorCanBeGivenUp) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(5));
  t.lock(Ask("pull", "r", "n1").unmonitored());
  t.close_bond("pull", "r", "n1", 5);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
}

TEST(AskAgain, S2_WithoutMonitorLeavesAHoldAsItIs) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(5));
  t.lock("pull", "r", "n1");
  t.close_bond("pull", "r", "n1", 5);
  t.pass(3000);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(AskAgain, S2_TheScopeOfASecondAskDoesNotApply) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n1").whole_resource());
  EXPECT_EQ(t.lock("update", "r", "n2").state, LockState::acquired);
  t.lock("pull", "r", "n3");
  t.lock(Ask("pull", "r", "n3").whole_resource());
  EXPECT_EQ(t.lock("job", "r", "n4").state, LockState::acquired) << "nor that of a waiter";
}

TEST(AskAgain, S2_TheDereferenceOfASecondAskDoesNotApply) {
  TestEngine t;
  t.lock("delete", "r", "n1");
  t.lock("delete", "r", "n2");
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.lock("pull", "r", "n2");  // told to skip, which makes it a user too
  ASSERT_THAT(t.references("r"), ElementsAre("n1", "n2"));
  t.lock(Ask("delete", "r", "n1").dereference());
  t.lock(Ask("delete", "r", "n2").dereference());
  EXPECT_THAT(t.references("r"), ElementsAre("n1", "n2"));
  t.fail("delete", "r", "n1", "x");
  EXPECT_EQ(t.status("delete", "r", "n2").success, false)
      << "refused, not skipped: it never said dereference";
  EXPECT_THAT(t.references("r"), ElementsAre("n1", "n2"));
}

TEST(AskAgain, S2_DoesNotExtendMaxHold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  for (int minute = 0; minute < 59; ++minute) {
    t.pass(60'000);
    t.lock("pull", "r", "n1");
  }
  t.pass(60'000);
  EXPECT_EQ(t.last_event().reason, "max_hold");
}

TEST(AskAgain, S2_AWaiterKeepsItsPlaceOnce) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.lock("pull", "r", "n3");
  const LockAnswer again = t.lock("pull", "r", "n2");
  EXPECT_EQ(again.state, LockState::queued);
  EXPECT_EQ(again.position, 1u);
  ASSERT_TRUE(again.holder);
  EXPECT_EQ(again.holder->who.node.text, "n1");
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2", "n3"));
}

TEST(AskAgain, S2_ANewLeaseOfAWaiterAppliesToItsGrant) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").lease(1000));
  t.lock(Ask("pull", "r", "n2").lease(5000).poll(1));
  t.fail("pull", "r", "n1", "x");
  EXPECT_EQ(t.status("pull", "r").holder->lease, ms(5000));
}

TEST(AskAgain, S2_ANewMonitorOfAWaiterAppliesToItsGrant) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  EXPECT_TRUE(t.lock(Ask("pull", "r", "n2").monitor(5)).bonded);
  t.fail("pull", "r", "n1", "x");
  t.close_bond("pull", "r", "n2", 5);
  t.pass(3000);
  EXPECT_EQ(t.last_event().reason, "bond");
}

TEST(AskAgain, S2_ARememberedSkipIsToldForTheClaimTimeoutWhoeverHoldsTheLane) {
  EngineSettings settings;
  settings.retain_completed = Duration(0);
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.lock("pull", "r", "n3").state, LockState::acquired) << "nothing is kept for a late-comer";
  t.pass(9'999);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped) << "as often as it asks";
  t.now += ms(1);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::queued);
}

TEST(AskAgain, S2_ASkipThatWasVoidedIsDecidedAnew) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.lock("delete", "r", "n1");
  t.succeed("delete", "r", "n1");
  EXPECT_FALSE(t.status("pull", "r", "n2").completed);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
}

TEST(AskAgain, S2_AFailureIsToldToAStatusPollButDecidedAnewByLock) {
  EngineSettings settings;
  settings.retain_permanent_failure = Duration(0);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.lock("pull", "r", "n3");
  t.fail_permanently("pull", "r", "n1", "404");
  t.pass(9'999);
  for (const char* node : {"n2", "n3", "n3"}) {
    const StatusAnswer told = t.status("pull", "r", node);
    EXPECT_TRUE(told.completed);
    EXPECT_FALSE(told.success);
    EXPECT_EQ(told.error, "404");
  }
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
  EXPECT_FALSE(t.status("pull", "r", "n2").completed) << "it holds now";
  t.now += ms(1);
  EXPECT_FALSE(t.status("pull", "r", "n3").completed);
}

TEST(AskAgain, S2_ARefusalIsToldToAStatusPollButDecidedAnewByLock) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock("delete", "r", "n2");
  t.add_reference("r", "n3");
  t.succeed("update", "r", "n1");
  const StatusAnswer told = t.status("delete", "r", "n2");
  EXPECT_TRUE(told.completed);
  EXPECT_FALSE(told.success);
  EXPECT_NE(told.error, "");
  t.release_reference("r", "n3");
  EXPECT_EQ(t.lock("delete", "r", "n2").state, LockState::acquired);
}

TEST(AskAgain, S2_HowAWaitEndedIsNobodyElsesBusiness) {
  EngineSettings settings;
  settings.retain_permanent_failure = Duration(0);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").request("a"));
  t.fail_permanently("pull", "r", "n1", "404");
  EXPECT_TRUE(t.status("pull", "r", "n2", "a").completed);
  EXPECT_FALSE(t.status("pull", "r", "n2", "b").completed);
  EXPECT_FALSE(t.status("pull", "r", "n2").completed);
  EXPECT_FALSE(t.status("pull", "r", "n1").completed);
}

TEST(AskAgain, S2_TwoRequestsOfOneNodeAreTwoRequesters) {
  TestEngine t;
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").request("a")).state, LockState::acquired);
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").request("b")).state, LockState::queued);
  EXPECT_EQ(t.lock("pull", "r", "n1").state, LockState::queued) << "without a request id it is a third";
  EXPECT_EQ(t.holder("pull", "r"), "n1/a");
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n1/b", "n1"));
}

}  // namespace
}  // namespace turnstile
