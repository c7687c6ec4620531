// Section 6 of docs/semantics.md, rules S22 to S26: leases, progress, the longest hold, long polls,
// cancelling and breaking. Bonds (S21) are in bond_test.cc.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RenewCommand renewal(std::string_view node, Token token) {
  return {lane_of("pull", "r"), requester(node), token, {}, {}};
}

TEST(Lease, S22_AHoldEndsByTheFailurePathUnlessRenewedInTime) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(1000));
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.take_events();
  t.pass(999);
  EXPECT_THAT(t.take_events(), IsEmpty());
  t.pass(1);
  EXPECT_EQ(t.sink.log.events.end()[-2].reason, "lease");
  EXPECT_THAT(t.take_events(), ElementsAre("expired pull n1: lease", "granted pull n2"));
}

TEST(Lease, S22_RenewingGivesTheFullTimeAgain) {
  TestEngine t;
  const Token token = t.lock(Ask("pull", "r", "n1").lease(1000)).token;
  for (int i = 0; i < 5; ++i) {
    t.pass(999);
    const RenewAnswer answer = t.renew(renewal("n1", token));
    EXPECT_EQ(answer.refusal, Refusal::none);
    EXPECT_EQ(answer.lease, ms(1000));
  }
  t.pass(999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.pass(1);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(Lease, S22_RenewingCanChangeTheLease) {
  TestEngine t;
  const Token token = t.lock(Ask("pull", "r", "n1").lease(1000)).token;
  RenewCommand command = renewal("n1", token);
  command.lease = ms(5000);
  EXPECT_EQ(t.renew(command).lease, ms(5000));
  t.pass(4'999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.pass(1);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(Lease, S22_AHoldWithALeaseIsNotEndedByMaxHold) {
  TestEngine t;
  const Token token = t.lock(Ask("pull", "r", "n1").lease(600'000)).token;
  for (int i = 0; i < 20; ++i) {
    t.pass(599'000);
    t.renew(renewal("n1", token));
  }
  EXPECT_EQ(t.holder("pull", "r"), "n1");
}

TEST(Lease, S22_ALeaseOfAMonitoredHoldRunsToo) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(10'000).monitor(1));
  t.pass(10'000);
  EXPECT_EQ(t.last_event().reason, "lease");
}

TEST(Lease, S22_WhatRanOutFirstIsTheReasonEvenForALateSweep) {
  for (const int64_t lease : {1'000, 10'000}) {
    TestEngine t;
    t.lock(Ask("pull", "r", "n1").lease(lease).monitor(1));
    t.close_bond("pull", "r", "n1", 1);
    t.now += ms(20'000);
    t.sweep();
    EXPECT_EQ(t.last_event().reason, lease < 3'000 ? "lease" : "bond");
  }
}

TEST(Progress, S22_WaitersAndStatusSeeIt) {
  TestEngine t;
  const Token token = t.lock("pull", "r", "n1").token;
  EXPECT_FALSE(t.lock("pull", "r", "n2").holder->progress);
  RenewCommand command = renewal("n1", token);
  command.progress = Progress{7, 10};
  EXPECT_EQ(t.renew(command).refusal, Refusal::none);
  EXPECT_EQ(t.lock("pull", "r", "n2").holder->progress, (Progress{7, 10}));
  EXPECT_EQ(t.status("pull", "r").holder->progress, (Progress{7, 10}));
  t.fail("pull", "r", "n1", "x");
  EXPECT_FALSE(t.status("pull", "r").holder->progress) << "it is the hold's, not the lane's";
}

TEST(Progress, S22_StallTimeoutEndsAHoldWhoseProgressDoesNotMove) {
  EngineSettings settings;
  settings.stall_timeout = ms(5000);
  TestEngine t(settings);
  RenewCommand command = renewal("n1", t.lock("pull", "r", "n1").token);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1") << "it has never reported progress";
  command.progress = Progress{1, 10};
  t.renew(command);
  t.pass(4'999);
  command.progress = Progress{2, 10};
  t.renew(command);
  t.pass(4'999);
  EXPECT_EQ(t.holder("pull", "r"), "n1") << "it moved";
  t.renew(command);
  t.pass(1);
  EXPECT_EQ(t.last_event().reason, "stall") << "the same numbers again are no progress";
}

TEST(Progress, S22_StallTimeoutIsOffByDefault) {
  TestEngine t;
  RenewCommand command = renewal("n1", t.lock("pull", "r", "n1").token);
  command.progress = Progress{1, 10};
  t.renew(command);
  t.pass(3'599'999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
}

TEST(MaxHold, S23_EndsAPlainHold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.take_events();
  t.pass(3'599'999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.pass(1);
  EXPECT_THAT(t.take_events(), ElementsAre("expired pull n1: max_hold", "granted pull n2"));
}

TEST(MaxHold, S23_ZeroMeansForEver) {
  EngineSettings settings;
  settings.max_hold = Duration(0);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  EXPECT_EQ(t.engine.next_deadline(), kNever);
}

TEST(MaxHold, S23_AHoldThatGivesUpItsMonitorIsPlainFromThenOn) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  t.pass(10'000'000);
  t.lock(Ask("pull", "r", "n1").unmonitored());
  t.pass(3'599'999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.pass(1);
  EXPECT_EQ(t.last_event().reason, "max_hold");
}

TEST(LongPoll, S24_ItsTimeOutSaysQueuedAndKeepsThePlaceWithNoGraceRunning) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n0");
  t.lock(Ask("pull", "r", "n2").poll(2));
  const auto answer = t.end_poll("pull", "r", "n2", 2);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->state, LockState::queued);
  EXPECT_EQ(answer->position, 2u);
  EXPECT_EQ(answer->holder->who.node.text, "n1");
  t.pass(1'000'000);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n0", "n2"));
  EXPECT_THAT(t.wakes, IsEmpty());
}

TEST(LongPoll, S24_ItsTimeOutIsNothingWhenTheAnswerIsUnderWay) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.fail("pull", "r", "n1", "x");
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
  EXPECT_FALSE(t.end_poll("pull", "r", "n2", 2));
  EXPECT_FALSE(t.end_poll("pull", "unknown", "n2", 2));
}

TEST(LongPoll, S24_EveryOpenPollOfAWaiterIsAnsweredOnce) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock(Ask("pull", "r", "n2").poll(3));
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_EQ(t.wake(3).state, LockState::skipped);
}

TEST(LongPoll, S24_APollThatIsAnsweredAtOnceIsNotWoken) {
  TestEngine t;
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").poll(1)).state, LockState::acquired);
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").poll(2)).state, LockState::acquired);
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.lock(Ask("pull", "r", "n2").poll(3)).state, LockState::skipped);
  EXPECT_THAT(t.wakes, IsEmpty());
}

TEST(Cancel, S25_AWaiterLeavesTheQueueAtOnceAndItsPollIsToldSo) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock("pull", "r", "n3");
  t.take_events();
  EXPECT_TRUE(t.cancel("pull", "r", "n2"));
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n3"));
  EXPECT_EQ(t.wake(2).state, LockState::cancelled);
  EXPECT_THAT(t.take_events(), ElementsAre("cancelled pull n2"));
  EXPECT_FALSE(t.cancel("pull", "r", "n2"));
}

TEST(Cancel, S25_AWaiterThatLeavesLetsGoWhomOnlyItKeptWaiting) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("delete", "r", "n2").whole_resource());
  t.lock("update", "r", "n3");
  t.cancel("delete", "r", "n2");
  EXPECT_EQ(t.holder("update", "r"), "n3");
}

TEST(Cancel, S25_AnUnclaimedGrantEndsByTheFailurePath) {
  TestEngine t;
  for (const char* node : {"n1", "n2", "n3"}) t.lock("pull", "r", node);
  t.fail("pull", "r", "n1", "x");
  t.take_events();
  EXPECT_TRUE(t.cancel("pull", "r", "n2"));
  EXPECT_EQ(t.sink.log.events.end()[-2].reason, "cancelled");
  EXPECT_THAT(t.take_events(), ElementsAre("expired pull n2: cancelled", "granted pull n3"));
  EXPECT_EQ(t.lock("pull", "r", "n3").previous_error, "cancelled");
}

TEST(Cancel, S25_AClaimedHoldIsNotTouched) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  EXPECT_FALSE(t.cancel("pull", "r", "n1"));
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x");
  t.lock("pull", "r", "n2");
  EXPECT_FALSE(t.cancel("pull", "r", "n2"));
  EXPECT_EQ(t.holder("pull", "r"), "n2");
}

TEST(Cancel, S25_ConcernsOnlyTheRequesterItself) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").request("a"));
  EXPECT_FALSE(t.cancel("pull", "r", "n2"));
  EXPECT_FALSE(t.cancel("pull", "r", "n2", "b"));
  EXPECT_FALSE(t.cancel("update", "r", "n2", "a"));
  EXPECT_FALSE(t.cancel("pull", "unknown", "n2", "a"));
  EXPECT_TRUE(t.cancel("pull", "r", "n2", "a"));
}

TEST(Break, S26_EndsAHoldByTheFailurePathWithAReasonThatEverybodySees) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(1000));
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.take_events();
  const BreakAnswer answer = t.break_hold("pull", "r", "node was sold");
  EXPECT_EQ(answer.refusal, Refusal::none);
  EXPECT_EQ(answer.node.text, "n1");
  EXPECT_EQ(t.sink.log.events.end()[-2].reason, "node was sold");
  EXPECT_THAT(t.take_events(), ElementsAre("broken pull n1: node was sold", "granted pull n2"));
  EXPECT_EQ(t.wake(2).previous_error, "node was sold");
}

TEST(Break, S26_OfAHoldThatHasEndedByItselfDoesNotEndTheNextOne) {
  TestEngine t;
  const Token seen = t.lock("own", "r", "n1").token;
  t.lock("own", "r", "n2");
  t.succeed("own", "r", "n1");
  EXPECT_EQ(t.break_hold("own", "r", "n1 hangs", seen).refusal, Refusal::stale_token);
  EXPECT_EQ(t.holder("own", "r"), "n2");
  EXPECT_EQ(t.break_hold("own", "r", "n2 hangs", Token(uint64_t(seen) + 1)).node.text, "n2");
}

TEST(Break, S26_OfAFreeLaneIsNotHeld) {
  TestEngine t;
  EXPECT_EQ(t.break_hold("pull", "r", "x").refusal, Refusal::not_held);
  t.lock("update", "r", "n1");
  EXPECT_EQ(t.break_hold("pull", "r", "x").refusal, Refusal::not_held);
  EXPECT_EQ(t.holder("update", "r"), "n1");
}

}  // namespace
}  // namespace turnstile
