// Holes of an earlier prototype in doing a thing once, as far as they are the engine's: D1, D2, D8.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::SizeIs;

// Only the completion is to decide in these tests.
EngineSettings without_references() {
  EngineSettings settings;
  settings.server_keeps_references = false;
  return settings;
}

TEST(Regression, D1_SuccessIsNotForgottenAtOnceALateComerSkips) {
  TestEngine t(without_references());
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(t.lock("pull", "r", fmt::format("late{}", i)).state, LockState::skipped);
    t.pass(29'000);
  }
  t.pass(10'000);
  EXPECT_EQ(t.lock("pull", "r", "too late").state, LockState::acquired);
}

TEST(Regression, D2_AHoldersSuccessReachesTheWaitersAsSkipNeverAsAnError) {
  TestEngine t(without_references());
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "long poll").poll(2));
  t.lock("pull", "r", "status poll");
  t.lock("pull", "r", "asks again");
  t.lock("pull", "r", "subscribes");
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_EQ(t.wake(2).refusal, Refusal::none);
  EXPECT_EQ(t.wake(2).error, "");
  const StatusAnswer status = t.status("pull", "r", "status poll");
  EXPECT_TRUE(status.completed);
  EXPECT_TRUE(status.success);
  EXPECT_EQ(status.error, "");
  const LockAnswer again = t.lock("pull", "r", "asks again");
  EXPECT_EQ(again.state, LockState::skipped);
  EXPECT_EQ(again.error, "");
  const auto told = t.subscribe("pull", "r", "subscribes", 5);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].kind, EventKind::completed);
  EXPECT_EQ(told[0].error, "");
}

TEST(Regression, D8_AnOldSuccessDoesNotEndTheWaitForANewerPullAfterADelete) {
  TestEngine t(without_references());
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.lock("delete", "r", "n1");
  t.succeed("delete", "r", "n1");
  // The second generation: n3 pulls really, n2 waits for it, and the first success ends neither.
  EXPECT_EQ(t.lock("pull", "r", "n3").state, LockState::acquired);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::queued);
  EXPECT_FALSE(t.status("pull", "r", "n2").completed);
  EXPECT_FALSE(t.status("pull", "r").completed);
  EXPECT_TRUE(t.subscribe("pull", "r", "n2", 2).empty()) << "no event of the first generation";
  t.fail("pull", "r", "n3", "x");
  EXPECT_TRUE(t.status("pull", "r", "n2").acquired);
}

TEST(Regression, D8_ADeleteThatFailsVoidsNothing) {
  TestEngine t(without_references());
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.lock("delete", "r", "n1");
  t.fail("delete", "r", "n1", "x");
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped);
}

TEST(Regression, D8_AWaiterBehindADeleteReallyPullsAfterIt) {
  TestEngine t(without_references());
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.lock(Ask("delete", "r", "n1").whole_resource());
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.succeed("delete", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
}

}  // namespace
}  // namespace turnstile
