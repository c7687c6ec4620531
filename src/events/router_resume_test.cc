// Coming back: what a stream that reconnects with the last id it saw is given (S28, L16).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/router.h"
#include "events/testing.h"

namespace turnstile {
namespace {

using events_testing::event_on;
using events_testing::ids_of;
using events_testing::kAlice;
using events_testing::kBob;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ResumeTest : public ::testing::Test {
 protected:
  StepId append(std::string_view resource) {
    const Event event = event_on(resource);
    return log_.append({&event, 1}, ++sequence_);
  }
  void publish(std::string_view resource) { router_.answered(append(resource)); }
  Filter on(std::string_view resource) { return Filter::lane(events_testing::lane("pull", resource)); }

  events_testing::Inbox inbox_;
  uint64_t sequence_ = 0;
  EventLog log_{101, {.max_events = 16}};
  Router router_{log_, events_testing::format_id, inbox_.deliver()};
};

TEST_F(ResumeTest, S28_L16_AReconnectGetsExactlyWhatItMissedAndThenGoesOnLive) {
  for (const char* resource : {"a", "b", "a", "a"}) publish(resource);  // 101 to 104
  const Subscribed resumed = router_.resume(0, kAlice, on("a"), 101);
  EXPECT_TRUE(resumed.live);
  EXPECT_EQ(resumed.reset_at, 0u);
  EXPECT_THAT(ids_of(resumed.backlog), ElementsAre(103, 104));
  EXPECT_EQ(router_.format(resumed.backlog), "103:a\n104:a\n");
  publish("a");
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(105));
}

TEST_F(ResumeTest, S28_WhatWasAppendedButNotPublishedIsDeliveredWhenItIs) {
  publish("a");
  const StepId open = append("a");
  const StepId behind = append("a");
  router_.answered(behind);
  const Subscribed resumed = router_.resume(0, kAlice, on("a"), 100);
  EXPECT_THAT(ids_of(resumed.backlog), ElementsAre(101));
  router_.answered(open);
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(102, 103));
}

TEST_F(ResumeTest, S28_APositionAheadOfTheHorizonIsRespected) {
  const StepId first = append("a");
  const uint64_t position = router_.subscribe(0, kBob, on("a")).position;
  router_.unsubscribe(kBob);
  const StepId second = append("a");
  EXPECT_TRUE(router_.resume(0, kAlice, on("a"), position).live);
  router_.answered(first);
  router_.answered(second);
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(102));
}

TEST_F(ResumeTest, S28_AnIdThatIsTooOldIsAnsweredWithResetAndWhatIsKnownSince) {
  for (int i = 0; i < 40; ++i) publish("a");
  const StepId open = append("a");  // the ring holds 126 to 141
  const Subscribed resumed = router_.resume(0, kAlice, on("a"), 110);
  EXPECT_TRUE(resumed.live);
  EXPECT_EQ(resumed.reset_at, 124u);
  EXPECT_EQ(ids_of(resumed.backlog).front(), 126u);
  EXPECT_EQ(ids_of(resumed.backlog).back(), 140u);
  router_.answered(open);
  publish("a");
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(141, 142));
}

TEST_F(ResumeTest, S28_AnIdOfAnEarlierLifeOrOfNobodysIsAnsweredWithResetAndAllOfThisLife) {
  publish("a");
  uint64_t subscriber = 10;
  for (const uint64_t id : {uint64_t(42), uint64_t(0), uint64_t(102), UINT64_MAX}) {
    const Subscribed resumed = router_.resume(0, SubscriberId(++subscriber), on("a"), id);
    EXPECT_EQ(resumed.reset_at, 99u) << id;
    EXPECT_THAT(ids_of(resumed.backlog), ElementsAre(101)) << id;
  }
  for (const uint64_t id : {101, 100, 99})
    EXPECT_EQ(router_.resume(0, SubscriberId(++subscriber), on("a"), id).reset_at, 0u) << id;
}

TEST_F(ResumeTest, S28_WhoSawTheLastEventOfTheEarlierLifeHasMissedNothing) {
  EventLog log(101, {.last_of_earlier_life = 57});
  Router router(log, events_testing::format_id, inbox_.deliver());
  const Event event = event_on("a");
  router.answered(log.append({&event, 1}, 1));
  const Subscribed resumed = router.resume(0, kAlice, on("a"), 57);
  EXPECT_EQ(resumed.reset_at, 0u);
  EXPECT_THAT(ids_of(resumed.backlog), ElementsAre(101));
  EXPECT_EQ(router.resume(0, kBob, on("a"), 56).reset_at, 99u);
}

TEST_F(ResumeTest, S28_WhoWasToldTheStateInALifeWithoutEventsHasMissedNothing) {
  EventLog log(101, {.last_of_earlier_life = 57, .beginning_of_earlier_life = 79});
  Router router(log, events_testing::format_id, inbox_.deliver());
  EXPECT_EQ(router.resume(0, kAlice, on("a"), 79).reset_at, 0u);
  EXPECT_EQ(router.resume(0, kBob, on("a"), 57).reset_at, 0u);
  EXPECT_EQ(router.resume(0, SubscriberId(17), on("a"), 78).reset_at, 99u);
}

TEST_F(ResumeTest, S28_AResetBeforeAnythingHappenedIsNotRepeated) {
  const Subscribed first = router_.resume(0, kAlice, on("a"), 42);
  EXPECT_EQ(first.reset_at, 99u);
  EXPECT_THAT(ids_of(first.backlog), IsEmpty());
  EXPECT_EQ(first.position, 100u) << "what is told behind the reset has another id";
  EXPECT_EQ(router_.resume(0, kBob, on("a"), first.reset_at).reset_at, 0u);
}

TEST_F(ResumeTest, ALongBacklogComesInPartsWithoutAGap) {
  for (int i = 0; i < 7; ++i) publish("a");
  std::vector<uint64_t> seen;
  uint64_t last = 100;
  int parts = 0;
  for (bool live = false; !live; ++parts) {
    const Subscribed resumed = router_.resume(0, kAlice, on("a"), last, {.events = 3});
    for (const uint64_t id : ids_of(resumed.backlog)) seen.push_back(id);
    last = resumed.position;
    live = resumed.live;
    EXPECT_EQ(router_.count(), live ? 1u : 0u);
  }
  EXPECT_EQ(parts, 3);
  EXPECT_THAT(seen, ElementsAre(101, 102, 103, 104, 105, 106, 107));
  publish("a");
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(108));
}

TEST_F(ResumeTest, ABacklogLongerThanOneReadingIsStillOne) {
  EventLog log(1);
  Router router(log, events_testing::format_id, inbox_.deliver());
  const Event other = event_on("other"), mine = event_on("mine");
  std::vector<uint64_t> expected;
  for (uint64_t i = 0; i < 10'000; ++i) {
    router.answered(log.append({i % 1000 == 999 ? &mine : &other, 1}, i));
    if (i % 1000 == 999) expected.push_back(i + 1);
  }
  const Subscribed resumed = router.resume(0, kAlice, on("mine"), 0);
  EXPECT_TRUE(resumed.live);
  EXPECT_EQ(ids_of(resumed.backlog), expected);
}

TEST_F(ResumeTest, EventsOverwrittenBeforeTheyCouldBeRoutedMeanAResetForThoseWhoWaitedForThem) {
  router_.subscribe(0, kAlice, on("a"));
  const StepId stuck = append("a");
  std::vector<StepId> steps;
  for (int i = 0; i < 20; ++i)
    steps.push_back(append("a"));  // 101 to 105 are overwritten, the stuck one among them
  router_.subscribe(0, kBob, on("a"));
  steps.push_back(append("a"));
  router_.answered(steps);
  const std::vector<Delivery> seen = inbox_.of(0, kAlice);
  ASSERT_EQ(seen.size(), 17u);
  EXPECT_EQ(seen[0].bytes, nullptr);
  EXPECT_EQ(seen[0].id, 106u);
  EXPECT_EQ(seen[1].id, 107u);
  EXPECT_EQ(*seen[16].bytes, "122:a\n");
  EXPECT_THAT(inbox_.ids(0, kBob), ElementsAre(122)) << "nothing is lost for whoever came later";
  router_.answered(stuck);
}

}  // namespace
}  // namespace turnstile
