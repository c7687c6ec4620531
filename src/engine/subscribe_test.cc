// Section 7 of docs/semantics.md, rule S27 as far as it is the engine's: what a new subscriber is told first.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> texts_of(const std::vector<Event>& events) {
  std::vector<std::string> texts;
  for (const Event& event : events) texts.push_back(text_of(event));
  return texts;
}

TEST(Subscribe, S27_ACompletionThatIsToldAgainHasTheTokenAndAttemptOfItsHold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.lock("pull", "r", "n3");
  t.fail("pull", "r", "n1", "no");
  const Token token = t.status("pull", "r", "n2").token;
  t.succeed("pull", "r", "n2");
  const auto again = TestEngine::load(t.sink.log.records, t.now);
  for (TestEngine* each : {&t, again.get()}) {
    const auto events = each->subscribe("pull", "r");
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].token, token);
    EXPECT_EQ(events[0].attempt, 2u);
  }
}

TEST(Subscribe, S27_AnEndingThatIsToldAgainHasThemToo) {
  EngineSettings settings;
  settings.retain_permanent_failure = Duration(0);
  TestEngine t(settings);
  const Token token = t.lock("pull", "r", "n1").token;
  t.lock("pull", "r", "n2");
  t.fail_permanently("pull", "r", "n1", "404");
  const auto again = TestEngine::load(t.sink.log.records, t.now, settings);
  for (TestEngine* each : {&t, again.get()}) {
    const auto events = each->subscribe("pull", "r", "n2", 2);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].token, token);
    EXPECT_EQ(events[0].attempt, 1u);
  }
}

TEST(Subscribe, S27_NothingIsToldWhereNothingMatters) {
  TestEngine t;
  EXPECT_THAT(t.subscribe("pull", "r"), IsEmpty());
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  EXPECT_THAT(t.subscribe("pull", "r"), IsEmpty()) << "a claimed hold and a queue are no news";
}

TEST(Subscribe, S27_AKeptSuccessIsToldFirstWithItsOwnTime) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  const Time at = t.now;
  t.pass(1000);
  const auto events = t.subscribe("pull", "r", "n2", 2);
  ASSERT_THAT(texts_of(events), ElementsAre("completed pull n1"));
  EXPECT_EQ(events[0].at, at);
  EXPECT_EQ(events[0].lane, lane_of("pull", "r"));
  t.pass(300'000);
  EXPECT_THAT(t.subscribe("pull", "r"), IsEmpty()) << "no longer kept";
}

TEST(Subscribe, S27_AKeptPermanentFailureIsToldFirst) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  const auto events = t.subscribe("pull", "r");
  ASSERT_THAT(texts_of(events), ElementsAre("failed pull n1: 404"));
  EXPECT_TRUE(events[0].permanent);
}

TEST(Subscribe, S27_AGrantNotYetClaimedIsToldFirstToEverybody) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x");
  const Token token = t.last_event().token;
  t.pass(5);
  EXPECT_THAT(texts_of(t.subscribe("pull", "r")), ElementsAre("granted pull n2"));
  const auto own = t.subscribe("pull", "r", "n2", 2);
  ASSERT_THAT(texts_of(own), ElementsAre("granted pull n2"));
  EXPECT_EQ(own[0].token, token);
  EXPECT_EQ(own[0].attempt, 2u);
  EXPECT_EQ(own[0].at, t.now - ms(5));
  EXPECT_THAT(t.subscribe("pull", "r"), IsEmpty()) << "its bond has claimed it";
}

TEST(Subscribe, S27_HowTheSubscribersOwnWaitEndedIsToldWhenNothingElseTellsIt) {
  EngineSettings settings;
  settings.retain_completed = settings.retain_permanent_failure = Duration(0);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(texts_of(t.subscribe("pull", "r", "n2", 2)), ElementsAre("completed pull n2"));
  EXPECT_THAT(t.subscribe("pull", "r", "n3", 3), IsEmpty());
  t.lock("pull", "s", "n1");
  t.lock("pull", "s", "n2");
  t.fail_permanently("pull", "s", "n1", "404");
  EXPECT_THAT(texts_of(t.subscribe("pull", "s", "n2", 2)), ElementsAre("failed pull n2: 404"));
}

TEST(Subscribe, S27_OnlyItsOwnLaneIsTold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(t.subscribe("update", "r"), IsEmpty());
  EXPECT_THAT(t.subscribe("pull", "s"), IsEmpty());
}

TEST(Subscribe, S27_ThePositionIsTakenInTheSameStepAsTheState) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  uint64_t position = 0;
  const SubscribeCommand command{lane_of("pull", "r"), {}, BondId::none};
  const auto told = t.call([&](Effects& out) {
    return t.engine.subscribe(command, t.now, out, [&] { position = t.sink.latest(); });
  });
  EXPECT_EQ(position, t.sink.latest());
  EXPECT_THAT(texts_of(told.state), ElementsAre("completed pull n1"));
}

}  // namespace
}  // namespace turnstile
