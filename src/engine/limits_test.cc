// The limits of EngineSettings: what is beyond them is refused, and what goes makes room again.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

TEST(Limits, OneResourceTooManyIsRefusedUntilAnotherHasGone) {
  EngineSettings settings;
  settings.max_resources = 10;
  settings.retain_released = Duration(0);
  TestEngine t(settings);
  for (int i = 0; i < 10; ++i) t.lock("job", fmt::format("r{}", i), "n");
  EXPECT_EQ(t.lock("job", "more", "n").refusal, Refusal::too_many_resources);
  EXPECT_EQ(t.add_reference("more", "n").refusal, Refusal::too_many_resources);
  EXPECT_EQ(t.engine.resource_count(), 10u);
  EXPECT_EQ(t.lock("other", "r3", "n").state, LockState::acquired) << "a known one is not another";
  const SubscribeCommand bond{lane_of("job", "more"), requester("n"), BondId(5)};
  EXPECT_EQ(t.engine.subscribe(bond, t.now, t.scratch(), [] {}).refusal, Refusal::too_many_resources);
  const SubscribeCommand look{lane_of("job", "more"), {}, BondId(5)};
  EXPECT_EQ(t.engine.subscribe(look, t.now, t.scratch(), [] {}).refusal, Refusal::none);
  EXPECT_EQ(t.engine.resource_count(), 10u);
  t.succeed("job", "r0", "n");
  EXPECT_EQ(t.lock("job", "more", "n").state, LockState::acquired);
}

TEST(Limits, S42_ThatThereIsNoRoomWaitsAsAReadDoes) {
  EngineSettings settings;
  settings.max_resources = 3;
  TestEngine t(settings);
  for (int i = 0; i < 3; ++i) t.lock("job", fmt::format("r{}", i), "n");
  const uint64_t latest = t.sink.latest();
  ASSERT_GT(latest, 0u);
  Effects out;
  t.engine.lock(Ask("job", "more", "n").command, t.now, out);
  EXPECT_EQ(out.sequence, latest);
  out.clear();
  t.engine.add_reference({ResourceId("more"), NodeId("n")}, t.now, out);
  EXPECT_EQ(out.sequence, latest);
  out.clear();
  t.engine.subscribe({lane_of("job", "more"), requester("n"), BondId(5)}, t.now, out, [] {});
  EXPECT_EQ(out.sequence, latest);
}

TEST(Limits, OneReferenceTooManyIsRefusedUntilAnotherIsReleased) {
  EngineSettings settings;
  settings.max_references = 3;
  settings.retain_completed = Duration(0);
  TestEngine t(settings);
  for (const char* node : {"a", "b", "c"}) t.add_reference("r", node);
  EXPECT_EQ(t.add_reference("s", "d").refusal, Refusal::too_many_references);
  EXPECT_EQ(t.add_reference("r", "a").refusal, Refusal::none) << "it is there already";
  const LockAnswer refused = t.lock("pull", "r", "d");
  EXPECT_EQ(refused.state, LockState::refused) << "who cannot be counted must not skip";
  EXPECT_EQ(refused.refusal, Refusal::too_many_references);
  EXPECT_EQ(t.lock("pull", "r", "a").state, LockState::skipped);
  t.release_reference("r", "b");
  EXPECT_EQ(t.lock("pull", "r", "d").state, LockState::skipped);
}

TEST(Limits, WhoeverHasDoneTheWorkIsCountedAllTheSame) {
  EngineSettings settings;
  settings.max_references = 1;
  TestEngine t(settings);
  t.add_reference("r", "a");
  t.lock("pull", "s", "b");
  t.lock(Ask("pull", "s", "c").poll(3));
  t.succeed("pull", "s", "b");
  EXPECT_THAT(t.references("s"), ::testing::ElementsAre("b", "c"));
  for (const char* node : {"a", "b", "c"}) t.release_node(node);
  EXPECT_EQ(t.add_reference("r", "a").refusal, Refusal::none) << "the count is right again";
}

TEST(Limits, OneWaiterTooManyIsRefusedUntilAnotherHasLeft) {
  EngineSettings settings;
  settings.max_waiters = 4;
  TestEngine t(settings);
  for (const char* resource : {"r", "s"}) {
    t.lock("pull", resource, "n0");
    for (const char* node : {"n1", "n2"}) t.lock("pull", resource, node);
  }
  EXPECT_EQ(t.lock("pull", "s", "n3").refusal, Refusal::too_many_waiters);
  EXPECT_EQ(t.lock("pull", "s", "n2").state, LockState::queued) << "asked again";
  const auto again = TestEngine::load(t.sink.log.records, t.now, settings);
  EXPECT_EQ(again->lock("pull", "s", "n3").refusal, Refusal::too_many_waiters) << "also after a restart";
  t.cancel("pull", "r", "n1");
  EXPECT_EQ(t.lock("pull", "s", "n3").state, LockState::queued);
  t.fail_permanently("pull", "s", "n0", "404");
  for (const char* node : {"n4", "n5", "n6"}) EXPECT_EQ(t.lock("pull", "r", node).state, LockState::queued);
}

TEST(Limits, S38_AKeptSuccessIsNeverForgottenToMakeRoom) {
  EngineSettings settings;
  settings.max_resources = 2;
  settings.retain_released = Duration(0);
  TestEngine t(settings);
  for (const char* resource : {"r", "s"}) {
    t.lock("once", resource, "n1");
    t.succeed_with("once", resource, "n1", ms(10'000));
  }
  EXPECT_EQ(t.lock("once", "t", "n1").refusal, Refusal::too_many_resources);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::skipped);
  t.pass(10'000);
  EXPECT_EQ(t.engine.resource_count(), 0u);
  EXPECT_EQ(t.lock("once", "t", "n1").state, LockState::acquired);
}

TEST(Limits, S39_AResultThatHasNoRoomIsNotKeptAndItsHolderIsTold) {
  EngineSettings settings;
  settings.max_result_memory = 10;
  TestEngine t(settings);
  t.lock("once", "r", "n1");
  EXPECT_FALSE(t.succeed_with("once", "r", "n1", ms(5'000), "six by").result_dropped);
  t.lock("once", "s", "n1");
  t.lock(Ask("once", "s", "n2").poll(2));
  const UnlockAnswer answer = t.succeed_with("once", "s", "n1", ms(5'000), "five!");
  EXPECT_EQ(answer.refusal, Refusal::none) << "the work is done";
  EXPECT_TRUE(answer.result_dropped);
  EXPECT_EQ(t.last_event().result, "");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_EQ(t.wake(2).result, "");
  t.pass(10'000);
  EXPECT_EQ(t.engine.result_bytes(), 0u);
  t.lock("once", "s", "n1");
  EXPECT_FALSE(t.succeed_with("once", "s", "n1", ms(5'000), "ten bytes!").result_dropped) << "there is again";
}

}  // namespace
}  // namespace turnstile
