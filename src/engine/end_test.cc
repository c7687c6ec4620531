// Section 3 of docs/semantics.md, rules S10 to S14: how holds and waits end, and who goes next.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

EngineSettings without_references() {
  EngineSettings settings;
  settings.server_keeps_references = false;
  return settings;
}

TEST(Success, S10_EveryWaiterOfTheLaneSkipsInOneStepAndNobodyIsGranted) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock("pull", "r", "n3");
  t.lock(Ask("pull", "r", "n4").poll(4));
  const uint64_t steps = t.sink.latest();
  t.take_events();
  EXPECT_EQ(t.succeed("pull", "r", "n1").next.text, "");
  EXPECT_EQ(t.sink.latest(), steps + 1);
  EXPECT_THAT(t.take_events(), ElementsAre("completed pull n1"));
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
  EXPECT_EQ(t.holder("pull", "r"), "");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_EQ(t.wake(4).state, LockState::skipped);
  EXPECT_THAT(t.wakes, SizeIs(2));
  EXPECT_TRUE(t.status("pull", "r", "n3").success);
}

TEST(Success, S10_TheCompletionIsKeptForRetainCompleted) {
  EngineSettings settings = without_references();
  settings.retain_completed = ms(1000);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.pass(5);
  t.succeed("pull", "r", "n1");
  const Time at = t.now;
  t.pass(999);
  const StatusAnswer status = t.status("pull", "r");
  EXPECT_EQ(status.state, LaneState::completed);
  ASSERT_TRUE(status.completion);
  EXPECT_EQ(status.completion->node.text, "n1");
  EXPECT_TRUE(status.completion->success);
  EXPECT_FALSE(status.completion->permanent);
  EXPECT_EQ(status.completion->at, at);
  t.pass(1);
  EXPECT_EQ(t.status("pull", "r").state, LaneState::idle);
}

TEST(Success, S10_WithRetainCompletedZeroNothingIsKeptButWaitersSkip) {
  EngineSettings settings = without_references();
  settings.retain_completed = Duration(0);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_EQ(t.lock("pull", "r", "n3").state, LockState::acquired);
}

TEST(Success, S10_WaitersOfOtherLanesThatOnlyItKeptWaitingAreGrantedInTheSameStep) {
  TestEngine t(without_references());
  t.lock(Ask("delete", "r", "n1").whole_resource());
  t.lock("delete", "r", "n2");
  t.lock("update", "r", "n3");
  t.lock("pull", "r", "n4");
  const uint64_t steps = t.sink.latest();
  t.take_events();
  t.succeed("delete", "r", "n1");
  EXPECT_EQ(t.sink.latest(), steps + 1);
  EXPECT_THAT(t.take_events(), ElementsAre("completed delete n1", "granted update n3", "granted pull n4"));
}

TEST(Success, S11_HandoffKeepsNothingAndGrantsTheNextWaiter) {
  TestEngine t;
  t.lock("update", "r", "n1");
  t.lock(Ask("update", "r", "n2").poll(2));
  t.take_events();
  EXPECT_EQ(t.succeed("update", "r", "n1").next.text, "n2");
  EXPECT_THAT(t.take_events(), ElementsAre("completed update n1", "granted update n2"));
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
  EXPECT_EQ(t.wake(2).attempt, 1u);
  EXPECT_FALSE(t.status("update", "r").completion);
  t.succeed("update", "r", "n2");
  EXPECT_EQ(t.status("update", "r").state, LaneState::idle);
  EXPECT_EQ(t.lock("update", "r", "n3").state, LockState::acquired);
}

TEST(Failure, S12_GrantsTheNextWaiterAndTellsItAttemptAndError) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.take_events();
  t.fail("pull", "r", "n1", "reset");
  EXPECT_THAT(t.take_events(), ElementsAre("failed pull n1: reset", "granted pull n2"));
  EXPECT_EQ(t.last_event().attempt, 2u);
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
  EXPECT_EQ(t.wake(2).token, t.last_event().token);
  EXPECT_EQ(t.wake(2).attempt, 2u);
  EXPECT_EQ(t.wake(2).previous_error, "reset");
  t.fail("pull", "r", "n2", "disk full");
  EXPECT_EQ(t.wake(3).attempt, 3u);
  EXPECT_EQ(t.wake(3).previous_error, "disk full");
}

TEST(Failure, S12_AttemptsCountFromOneAgainAfterASuccess) {
  TestEngine t;
  for (const char* node : {"n1", "n2", "n3"}) t.lock("job", "r", node);
  t.fail("job", "r", "n1", "x");
  EXPECT_EQ(t.lock("job", "r", "n2").attempt, 2u);
  t.succeed("job", "r", "n2");
  const LockAnswer third = t.lock("job", "r", "n3");
  EXPECT_EQ(third.attempt, 1u);
  EXPECT_EQ(third.previous_error, "");
}

TEST(Failure, S12_AttemptsCountFromOneAgainWhenTheLaneHasEmptied) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x");
  t.fail("pull", "r", "n2", "y");
  const LockAnswer answer = t.lock("pull", "r", "n3");
  EXPECT_EQ(answer.attempt, 1u);
  EXPECT_EQ(answer.previous_error, "");
}

TEST(Failure, S12_AfterAnExpiryOrABreakThePreviousErrorIsTheReason) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(1000));
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.pass(1000);
  EXPECT_EQ(t.wake(2).previous_error, "lease");
  t.break_hold("pull", "r", "node is down");
  EXPECT_EQ(t.wake(3).attempt, 3u);
  EXPECT_EQ(t.wake(3).previous_error, "node is down");
}

TEST(Failure, S12_TheOldestWaiterThatMayGoIsGrantedAlthoughOfAnotherLane) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").whole_resource());
  t.lock(Ask("pull", "r", "n3").whole_resource());
  t.fail("pull", "r", "n1", "reset");
  EXPECT_EQ(t.holder("delete", "r"), "n2");
  EXPECT_EQ(t.lock("delete", "r", "n2").attempt, 1u) << "attempts are of the lane";
  t.fail("delete", "r", "n2", "other");
  const LockAnswer next = t.lock("pull", "r", "n3");
  EXPECT_EQ(next.attempt, 2u);
  EXPECT_EQ(next.previous_error, "reset");
}

TEST(Failure, S12_APermanentOneEndsAllWaitersOfTheLaneWithItsError) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock("pull", "r", "n3");
  t.lock("update", "r", "n1");
  t.lock("update", "r", "n4");
  t.take_events();
  t.fail_permanently("pull", "r", "n1", "404");
  EXPECT_TRUE(t.last_event().permanent);
  EXPECT_THAT(t.take_events(), ElementsAre("failed pull n1: 404"));
  EXPECT_EQ(t.wake(2).state, LockState::failed);
  EXPECT_EQ(t.wake(2).refusal, Refusal::failed);
  EXPECT_EQ(t.wake(2).error, "404");
  EXPECT_EQ(t.status("pull", "r", "n3").error, "404");
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
  EXPECT_THAT(t.queue("update", "r"), ElementsAre("n4")) << "other lanes are not concerned";
}

TEST(Failure, S12_APermanentOneIsKeptForItsOwnTime) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  t.pass(9'999);
  const StatusAnswer kept = t.status("pull", "r");
  EXPECT_EQ(kept.state, LaneState::completed);
  ASSERT_TRUE(kept.completion);
  EXPECT_EQ(kept.completion->node.text, "n1");
  EXPECT_FALSE(kept.completion->success);
  EXPECT_TRUE(kept.completion->permanent);
  EXPECT_EQ(kept.completion->error, "404");
  t.pass(1);
  EXPECT_EQ(t.status("pull", "r").state, LaneState::idle);
  EXPECT_EQ(t.lock("pull", "r", "n2").attempt, 1u);
}

TEST(Failure, S12_APermanentOneThatIsNotKeptStillEndsTheWaiters) {
  EngineSettings settings;
  settings.retain_permanent_failure = Duration(0);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.fail_permanently("pull", "r", "n1", "404");
  EXPECT_EQ(t.wake(2).state, LockState::failed);
  EXPECT_EQ(t.lock("pull", "r", "n3").state, LockState::acquired);
}

TEST(Voiding, S13_ASuccessVoidsTheKeptCompletionsOfTheOtherLanes) {
  for (const char* later : {"update", "delete"}) {
    TestEngine t(without_references());
    t.lock("pull", "r", "n1");
    t.succeed("pull", "r", "n1");
    t.lock(later, "r", "n1");
    t.succeed(later, "r", "n1");
    EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired)
        << "after " << later << " a pull really pulls";
  }
  TestEngine t(without_references());
  t.lock("delete", "r", "n1");
  t.succeed("delete", "r", "n1");
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.lock("delete", "r", "n1").state, LockState::acquired);
}

TEST(Voiding, S13_APermanentFailureOfAnotherLaneIsVoidedToo) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  t.lock("update", "r", "n2");
  t.succeed("update", "r", "n2");
  EXPECT_EQ(t.lock("pull", "r", "n1").state, LockState::acquired);
}

TEST(Voiding, S13_NeitherAFailureNorAPlainMutexNorTheOwnLaneVoids) {
  TestEngine t(without_references());
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.lock("delete", "r", "n1");
  t.fail("delete", "r", "n1", "x");
  t.lock("job", "r", "n1");
  t.succeed("job", "r", "n1");
  t.lock("pull", "other", "n1");
  t.succeed("pull", "other", "n1");
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped);
}

}  // namespace
}  // namespace turnstile
