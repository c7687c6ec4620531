// Rules S37 to S40 of docs/semantics.md: work that is done once, for how long that counts, what it leaves for
// those who skip, and how it is forgotten.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kHour = std::chrono::hours(1);

// `node` does the work of the lane and says how long that counts.
void work(TestEngine& t, std::string_view operation, std::string_view node, std::optional<Duration> keep = {},
          std::string_view result = {}) {
  ASSERT_EQ(t.lock(operation, "r", node).state, LockState::acquired);
  ASSERT_EQ(t.succeed_with(operation, "r", node, keep, result).refusal, Refusal::none);
}

// Also what those who skip ask for, after a restart from the log and from a snapshot.
std::vector<std::unique_ptr<TestEngine>> restarts(TestEngine& t, const EngineSettings& settings = {}) {
  std::vector<std::unique_ptr<TestEngine>> made;
  made.push_back(TestEngine::load(t.sink.log.records, t.now, settings));
  const OwnedLog snapshot = t.dump();
  made.push_back(TestEngine::load(snapshot.records, t.now, settings));
  return made;
}

TEST(Once, S37_WhoWaitsSkipsAndNoReferenceIsLeft) {
  TestEngine t;
  t.lock("once", "r", "n1");
  t.lock(Ask("once", "r", "n2").poll(2));
  t.succeed("once", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_EQ(t.lock("once", "r", "n3").state, LockState::skipped);
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(Once, S37_AFailureHandsOverWithItsError) {
  TestEngine t;
  t.lock("once", "r", "n1");
  t.lock("once", "r", "n2");
  t.fail("once", "r", "n1", "exit 1");
  const LockAnswer next = t.lock("once", "r", "n2");
  EXPECT_EQ(next.state, LockState::acquired);
  EXPECT_EQ(next.attempt, 2u);
  EXPECT_EQ(next.previous_error, "exit 1");
}

TEST(Once, S37_ReferencesNeitherSkipNorRefuseIt) {
  TestEngine t;
  t.add_reference("r", "n9");
  EXPECT_EQ(t.lock("once", "r", "n1").state, LockState::acquired);
}

TEST(Once, S37_ItVoidsNothingAndADeleteVoidsIt) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  work(t, "pull", "n1");
  work(t, "once", "n1", kHour);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped);
  work(t, "delete", "n1");
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired) << "S13, however long it was to count";
}

TEST(Keep, S38_ASuccessCountsForAsLongAsItSays) {
  TestEngine t;
  work(t, "once", "n1", 20 * kHour);
  t.pass(20 * 3'600'000 - 1);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::skipped);
  t.pass(1);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired);
}

TEST(Keep, S38_ItMayBeShorterThanTheServersOwnTime) {
  TestEngine t;
  work(t, "once", "n1", ms(2'000));
  t.pass(1'999);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::skipped);
  t.pass(1);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired);
}

TEST(Keep, S38_WithoutItASuccessCountsAsBefore) {
  TestEngine t;
  work(t, "once", "n1");
  t.pass(299'999);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::skipped);
  t.pass(1);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired);
}

TEST(Keep, S38_ZeroCountsForThoseWhoWaitedAndNobodyElse) {
  TestEngine t;
  t.lock("once", "r", "n1");
  t.lock("once", "r", "n2");
  EXPECT_EQ(t.succeed_with("once", "r", "n1", ms(0), "x").keep, ms(0));
  EXPECT_FALSE(t.status("once", "r").completion);
  const LockAnswer waited = t.lock("once", "r", "n2");
  EXPECT_EQ(waited.state, LockState::skipped);
  ASSERT_TRUE(waited.done);
  EXPECT_EQ(waited.done->node.text, "n1");
  EXPECT_EQ(waited.done->result, "x");
  EXPECT_EQ(t.lock("once", "r", "n3").state, LockState::acquired);
}

TEST(Keep, S38_ItCountsAlsoWhereTheServerKeepsNoCompletions) {
  EngineSettings settings;
  settings.retain_completed = Duration(0);
  TestEngine t(settings);
  work(t, "once", "n1", ms(5'000));
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::skipped);
}

TEST(Keep, S38_WhatIsTooLongIsCutAndTold) {
  EngineSettings settings;
  settings.max_keep = ms(10'000);
  TestEngine t(settings);
  t.lock("once", "r", "n1");
  EXPECT_EQ(t.succeed_with("once", "r", "n1", kHour).keep, ms(10'000));
  t.pass(9'999);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::skipped);
  t.pass(1);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired);
}

TEST(Keep, S38_TheAnswerTellsItOnlyToThoseWhoAsked) {
  TestEngine t;
  t.lock("once", "r", "n1");
  EXPECT_FALSE(t.succeed_with("once", "r", "n1", {}).keep);
  t.lock("once", "s", "n1");
  EXPECT_EQ(t.succeed_with("once", "s", "n1", ms(7)).keep, ms(7));
}

TEST(Keep, S38_WhatHandsOffIsNotKept) {
  TestEngine t;
  t.lock("job", "r", "n1");
  t.lock("job", "r", "n2");
  EXPECT_EQ(t.succeed_with("job", "r", "n1", kHour, "seen by events").keep, ms(0));
  EXPECT_EQ(t.sink.log.events[1].result, "seen by events");
  EXPECT_EQ(t.holder("job", "r"), "n2");
  EXPECT_FALSE(t.status("job", "r").completion);
  EXPECT_EQ(t.engine.result_bytes(), 0u);
}

TEST(Keep, S38_ARepeatedUnlockDoesNotProlongIt) {
  TestEngine t;
  const Token token = t.lock("once", "r", "n1").token;
  UnlockCommand command{lane_of("once", "r"), requester("n1"), token, true, {}, false, ms(5'000), "first"};
  t.unlock(command);
  t.pass(3'000);
  command.result = "second";
  const UnlockAnswer again = t.unlock(command);
  EXPECT_TRUE(again.already);
  EXPECT_FALSE(again.keep);
  EXPECT_EQ(t.status("once", "r").completion->result, "first");
  t.pass(2'000);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired);
}

TEST(Keep, S38_TheEndIsAPointInTimeThatARestartDoesNotMove) {
  TestEngine t;
  work(t, "once", "n1", kHour, "made");
  t.pass(3'000'000);
  for (auto& again : restarts(t)) {
    const LockAnswer skipped = again->lock("once", "r", "n2");
    EXPECT_EQ(skipped.state, LockState::skipped);
    ASSERT_TRUE(skipped.done);
    EXPECT_EQ(skipped.done->result, "made");
    EXPECT_EQ(skipped.done->ago, ms(3'000'000));
    again->pass(600'000);
    EXPECT_EQ(again->lock("once", "r", "n2").state, LockState::acquired);
  }
}

TEST(Keep, S38_WhatRanOutWhileTheServerWasAwayIsGone) {
  TestEngine t;
  work(t, "once", "n1", ms(5'000), "made");
  t.now += ms(5'000);
  for (auto& again : restarts(t)) {
    EXPECT_EQ(again->engine.result_bytes(), 0u);
    EXPECT_EQ(again->lock("once", "r", "n2").state, LockState::acquired);
  }
}

TEST(Keep, S38_AResourceLivesExactlyAsLong) {
  EngineSettings settings;
  settings.retain_released = Duration(0);
  TestEngine t(settings);
  work(t, "once", "n1", kHour);
  t.pass(3'599'999);
  EXPECT_EQ(t.engine.resource_count(), 1u);
  t.pass(1);
  EXPECT_EQ(t.engine.resource_count(), 0u);
}

TEST(Result, S39_EverySkipOfACompletionCarriesIt) {
  TestEngine t;
  t.lock("once", "r", "n1");
  t.lock(Ask("once", "r", "n2").poll(2));
  t.lock("once", "r", "n3");
  t.pass(40);
  t.succeed_with("once", "r", "n1", {}, "v42");
  EXPECT_EQ(t.last_event().result, "v42");
  EXPECT_EQ(t.wake(2).result, "v42");
  EXPECT_EQ(t.wake(2).done_by, "n1");
  t.pass(5);
  for (const char* node : {"n3", "n4"}) {  // who waited, and who comes late
    const LockAnswer answer = t.lock("once", "r", node);
    ASSERT_TRUE(answer.done) << node;
    EXPECT_EQ(answer.done->node.text, "n1");
    EXPECT_EQ(answer.done->ago, ms(5));
    EXPECT_EQ(answer.done->result, "v42");
  }
  const StatusAnswer own = t.status("once", "r", "n3");
  ASSERT_TRUE(own.done);
  EXPECT_EQ(own.done->result, "v42");
  const StatusAnswer lane = t.status("once", "r");
  ASSERT_TRUE(lane.completion);
  EXPECT_EQ(lane.completion->result, "v42");
  EXPECT_FALSE(lane.done) << "the completion says it all, and the same at any time";
  EXPECT_FALSE(t.status("once", "r", "n9").done) << "it has not waited";
  const std::vector<Event> first = t.subscribe("once", "r");
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].result, "v42");
}

TEST(Result, S39_WhoSkipsWithoutACompletionIsToldNobodys) {
  TestEngine t;
  t.add_reference("r", "n1");
  const LockAnswer answer = t.lock("pull", "r", "n2");
  EXPECT_EQ(answer.state, LockState::skipped);
  EXPECT_FALSE(answer.done);
}

TEST(Result, S39_TheNextCompletionHasItsOwn) {
  TestEngine t;
  t.lock("once", "r", "n1");
  t.lock("once", "r", "n2");
  t.succeed_with("once", "r", "n1", ms(0), "first");
  t.lock("once", "r", "n3");
  t.succeed_with("once", "r", "n3", {}, "");
  EXPECT_EQ(t.lock("once", "r", "n2").done->result, "first") << "by which its wait ended";
  const LockAnswer late = t.lock("once", "r", "n4");
  EXPECT_EQ(late.done->node.text, "n3");
  EXPECT_EQ(late.done->result, "");
}

TEST(Result, S39_AFailureLeavesNone) {
  TestEngine t;
  work(t, "once", "n1", ms(10), "old");
  t.pass(10);
  t.lock("once", "r", "n2");
  t.fail_permanently("once", "r", "n2", "404");
  EXPECT_EQ(t.last_event().result, "");
  EXPECT_EQ(t.status("once", "r").completion->result, "");
  EXPECT_FALSE(t.status("once", "r").done);
  EXPECT_FALSE(t.lock("once", "r", "n3").done);
}

TEST(Result, S39_ItSurvivesARestartWithItsCompletionAndItsSkips) {
  TestEngine t;
  for (const char* node : {"n1", "n2", "n3"}) t.lock("once", "r", node);
  t.succeed_with("once", "r", "n1", ms(3'000), "kept");
  t.pass(3'000);  // only the skips of those who waited are remembered now
  for (auto& again : restarts(t)) {
    for (const char* node : {"n2", "n3"}) {
      const LockAnswer answer = again->lock("once", "r", node);
      EXPECT_EQ(answer.state, LockState::skipped);
      ASSERT_TRUE(answer.done);
      EXPECT_EQ(answer.done->node.text, "n1");
      EXPECT_EQ(answer.done->ago, ms(3'000));
      EXPECT_EQ(answer.done->result, "kept");
    }
    EXPECT_EQ(again->engine.result_bytes(), 4u) << "one text, however many share it";
  }
}

TEST(Result, S39_WhoIsToldLaterInAnEndedQueueHearsIt) {
  EngineSettings settings;
  settings.most_told = 1;
  TestEngine t(settings);
  t.lock("once", "r", "n1");
  for (const uint64_t poll : {2, 3, 4}) t.lock(Ask("once", "r", fmt::format("n{}", poll)).poll(poll));
  t.succeed_with("once", "r", "n1", ms(0), "for all");
  EXPECT_EQ(t.wakes.size(), 1u);
  t.lock("once", "r", "n9");  // another attempt begins before all have been told
  for (int i = 0; i < 3; ++i) t.sweep();
  for (const uint64_t poll : {2, 3, 4}) EXPECT_EQ(t.wake(poll).result, "for all");
}

TEST(Result, S39_ItsMemoryIsGivenBackWhenNobodyCanAskAnyMore) {
  TestEngine t;
  t.lock("once", "r", "n1");
  t.lock("once", "r", "n2");
  t.succeed_with("once", "r", "n1", ms(1'000), "12345");
  EXPECT_EQ(t.engine.result_bytes(), 5u);
  t.pass(1'000);
  EXPECT_EQ(t.engine.result_bytes(), 5u) << "n2 may ask for claim_timeout";
  t.pass(9'000);
  EXPECT_EQ(t.engine.result_bytes(), 0u);
}

TEST(Forget, S40_TheNextRequestIsGranted) {
  TestEngine t;
  work(t, "once", "n1", kHour, "made");
  EXPECT_TRUE(t.forget("once", "r"));
  EXPECT_FALSE(t.status("once", "r").completion);
  EXPECT_EQ(t.engine.result_bytes(), 0u);
  EXPECT_FALSE(t.forget("once", "r")) << "there is nothing more";
  EXPECT_FALSE(t.forget("once", "never heard of"));
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired);
}

TEST(Forget, S40_WhoHasWaitedIsDecidedAnew) {
  TestEngine t;
  t.lock("once", "r", "n1");
  t.lock("once", "r", "n2");
  t.succeed_with("once", "r", "n1", kHour);
  t.forget("once", "r");
  for (auto& again : restarts(t)) EXPECT_EQ(again->lock("once", "r", "n2").state, LockState::acquired);
  EXPECT_EQ(t.lock("once", "r", "n2").state, LockState::acquired);
}

TEST(Forget, S40_APermanentFailureIsForgottenToo) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  EXPECT_TRUE(t.forget("pull", "r"));
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
}

TEST(Forget, S40_HoldsWaitersAndOtherLanesAreNotTouched) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  work(t, "pull", "n1");
  t.lock("once", "r", "n1");
  t.lock("once", "r", "n2");
  EXPECT_FALSE(t.forget("once", "r"));
  EXPECT_EQ(t.holder("once", "r"), "n1");
  EXPECT_THAT(t.queue("once", "r"), ElementsAre("n2"));
  EXPECT_EQ(t.lock("pull", "r", "n3").state, LockState::skipped);
}

TEST(Forget, S40_ItStaysForgottenOverARestart) {
  TestEngine t;
  work(t, "once", "n1", kHour);
  t.forget("once", "r");
  for (auto& again : restarts(t)) EXPECT_EQ(again->lock("once", "r", "n2").state, LockState::acquired);
}

}  // namespace
}  // namespace turnstile
