// The ring keeps the latest events whole, within its two limits.
#include "events/event_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "events/stored_event.h"
#include "events/testing.h"

namespace turnstile {
namespace {

using events_testing::event_on;

TEST(EventRing, GivesBackEveryFieldOfAnEvent) {
  EventRing ring(1, 4, 4096);
  Event event;
  event.kind = EventKind::failed;
  event.lane = events_testing::lane("update", "a:b/c %\xc3\xa4");
  event.who = {NodeId("n"), RequestId("r")};
  event.at = Time(Duration(-5));
  event.token = Token(UINT64_MAX);
  event.attempt = 3;
  event.permanent = true;
  event.error = "no space left";
  event.reason = "because";
  event.result = "made";
  ring.push(event);
  const Event back = load_event(ring.at(1));
  EXPECT_EQ(back.kind, EventKind::failed);
  EXPECT_EQ(back.lane, event.lane);
  EXPECT_EQ(back.who, event.who);
  EXPECT_EQ(back.at, event.at);
  EXPECT_EQ(back.token, event.token);
  EXPECT_EQ(back.attempt, 3u);
  EXPECT_TRUE(back.permanent);
  EXPECT_EQ(back.error, "no space left");
  EXPECT_EQ(back.reason, "because");
  EXPECT_EQ(back.result, "made");
}

TEST(EventRing, KeepsAtMostSoManyEventsAndDropsTheOldest) {
  EventRing ring(100, 3, 1 << 20);
  for (int i = 0; i < 10; ++i) ring.push(event_on("r" + std::to_string(i)));
  EXPECT_EQ(ring.first_id(), 107u);
  EXPECT_EQ(ring.last_id(), 109u);
  EXPECT_EQ(load_lane(ring.at(107)).resource.text, "r7");
}

TEST(EventRing, KeepsAtMostSoManyBytes) {
  const Event event = event_on("resource");
  EventRing ring(1, 1000, 5 * stored_size(event) + 1);
  for (int i = 0; i < 100; ++i) {
    ring.push(event);
    ASSERT_LE(ring.size(), 5u);
  }
  EXPECT_EQ(ring.size(), 5u);
}

TEST(EventRing, AnEventLargerThanTheRingLeavesItEmptyButTakesAnId) {
  EventRing ring(1, 10, 256);
  ring.push(event_on("small"));
  ring.push(event_on(std::string(1000, 'x')));
  EXPECT_EQ(ring.size(), 0u);
  EXPECT_EQ(ring.last_id(), 2u);
  EXPECT_EQ(ring.first_id(), 3u);
  ring.push(event_on("small again"));
  EXPECT_EQ(load_lane(ring.at(3)).resource.text, "small again");
}

TEST(EventRing, EventsOfAllSizesStayWholeWhileTheBlockIsWrittenRoundAndRound) {
  std::mt19937 random(11);
  EventRing ring(1, 40, 4096);
  std::deque<std::string> expected;
  for (int step = 0; step < 50'000; ++step) {
    expected.push_back(std::string(random() % (step % 7 == 0 ? 2000 : 60), char('a' + step % 26)));
    ring.push(event_on(expected.back()));
    ASSERT_EQ(ring.last_id(), uint64_t(step) + 1);
    ASSERT_GE(ring.size(), 1u);
    while (expected.size() > ring.size()) expected.pop_front();
    size_t bytes = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string_view stored = ring.at(ring.first_id() + i);
      bytes += stored.size();
      ASSERT_EQ(load_lane(stored).resource.text, expected[i]);
      ASSERT_EQ(load_event(stored).who.request.text, "request-1");
    }
    ASSERT_LE(bytes, 4096u);
  }
}

}  // namespace
}  // namespace turnstile
