// Live delivery: who gets what, when, and in which order.
#include "events/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/testing.h"

namespace turnstile {
namespace {

using events_testing::event_on;
using events_testing::kAlice;
using events_testing::kBob;
using events_testing::kCarol;
using events_testing::lane;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RouterTest : public ::testing::Test {
 protected:
  StepId append(std::string_view resource) {
    const Event event = event_on(resource);
    return log_.append({&event, 1}, ++sequence_);
  }
  Filter on(std::string_view resource) { return Filter::lane(lane("pull", resource)); }

  events_testing::Inbox inbox_;
  int formatted_ = 0;
  uint64_t sequence_ = 0;
  EventLog log_{1};
  Router router_{log_,
                 [this](uint64_t id, const Event& event) {
                   ++formatted_;
                   return events_testing::format_id(id, event);
                 },
                 inbox_.deliver()};
};

TEST_F(RouterTest, EachSubscriberGetsItsLaneAndNoOther) {
  router_.subscribe(0, kAlice, on("a"));
  router_.subscribe(1, kBob, on("b"));
  router_.subscribe(1, kCarol, Filter::everything());
  router_.answered(append("a"));
  router_.answered(append("b"));
  router_.answered(append("c"));
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(1));
  EXPECT_THAT(inbox_.ids(1, kBob), ElementsAre(2));
  EXPECT_THAT(inbox_.ids(1, kCarol), ElementsAre(1, 2, 3));
  EXPECT_EQ(*inbox_.of(1, kBob)[0].bytes, "2:b\n");
}

TEST_F(RouterTest, AnEventIsFormattedOnceForAllAndNotAtAllForNobody) {
  router_.answered(append("a"));
  router_.subscribe(0, kAlice, on("a"));
  router_.answered(append("b"));
  EXPECT_EQ(formatted_, 0);
  router_.subscribe(1, kBob, on("a"));
  router_.answered(append("a"));
  EXPECT_EQ(formatted_, 1);
  EXPECT_EQ(inbox_.of(0, kAlice)[0].bytes, inbox_.of(1, kBob)[0].bytes);
}

TEST_F(RouterTest, S30_AnEventIsNotDeliveredBeforeItsStepIsReleased) {
  router_.subscribe(0, kAlice, on("a"));
  const StepId step = append("a");
  EXPECT_THAT(inbox_.ids(0, kAlice), IsEmpty());
  router_.answered(step);
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(1));
}

TEST_F(RouterTest, S30_EventsLeaveInCommitOrderWhenStepsAreReleasedOutOfOrder) {
  router_.subscribe(0, kAlice, Filter::everything());
  const StepId steps[] = {append("a"), append("b"), append("c")};
  router_.answered(steps[2]);
  router_.answered(steps[1]);
  EXPECT_THAT(inbox_.ids(0, kAlice), IsEmpty());
  router_.answered(steps[0]);
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(1, 2, 3));
}

TEST_F(RouterTest, ManyStepsCanBeReleasedInOneCall) {
  router_.subscribe(0, kAlice, Filter::everything());
  const StepId steps[] = {append("a"), StepId::none, append("b")};
  router_.answered(steps);
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(1, 2));
}

TEST_F(RouterTest, L5_ASubscriberGetsWhatIsAppendedAfterItsPositionAndNothingFromBefore) {
  const StepId before =
      append("a");  // appended, and in the state that the subscriber is shown, but not published
  const Subscribed subscribed = router_.subscribe(0, kAlice, on("a"));
  EXPECT_EQ(subscribed.position, 1u);
  const StepId after = append("a");
  router_.answered(before);
  router_.answered(after);
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(2));
}

std::string format_texts(uint64_t, const Event& event) {
  return std::to_string(int(event.kind)) + "," + std::string(event.who.node.text) + "," +
         std::string(event.error) + "," + std::string(event.reason);
}

TEST(RouterEvents, L13_APureWatcherSeesAFailureWithItsErrorAlthoughNobodyWaits) {
  EventLog log(1);
  events_testing::Inbox inbox;
  Router router(log, format_texts, inbox.deliver());
  router.subscribe(0, kAlice, Filter::lane(lane("pull", "a")));
  Event failed = event_on("a", EventKind::failed);
  failed.error = "disk full";
  router.answered(log.append({&failed, 1}, 1));
  ASSERT_EQ(inbox.of(0, kAlice).size(), 1u);
  EXPECT_EQ(*inbox.of(0, kAlice)[0].bytes, "2,node-1,disk full,");
}

TEST(RouterEvents, L14_FailedAndGrantedAreDistinctAndKeepTheirTexts) {
  EventLog log(1);
  events_testing::Inbox inbox;
  Router router(log, format_texts, inbox.deliver());
  router.subscribe(0, kAlice, Filter::everything());
  Event events[] = {event_on("a", EventKind::failed), event_on("a", EventKind::granted),
                    event_on("a", EventKind::expired)};
  events[0].error = "404";
  events[1].who.node = NodeId("node-2");
  events[2].error = events[2].reason = "lease";
  router.answered(log.append(events, 1));
  std::vector<std::string> seen;
  for (const Delivery& each : inbox.of(0, kAlice)) seen.push_back(*each.bytes);
  EXPECT_THAT(seen, ElementsAre("2,node-1,404,", "0,node-2,,", "3,node-1,lease,lease"));
}

TEST_F(RouterTest, AnUnsubscribedStreamGetsNothingMore) {
  router_.subscribe(0, kAlice, on("a"));
  router_.subscribe(0, kBob, on("a"));
  EXPECT_EQ(router_.count(), 2u);
  router_.unsubscribe(kAlice);
  router_.unsubscribe(kAlice);
  router_.answered(append("a"));
  EXPECT_THAT(inbox_.ids(0, kAlice), IsEmpty());
  EXPECT_THAT(inbox_.ids(0, kBob), ElementsAre(1));
  router_.unsubscribe(kBob);
  EXPECT_EQ(router_.count(), 0u);
}

TEST_F(RouterTest, ALargeFanOutReachesEveryoneInOrder) {
  for (uint64_t i = 0; i < 3000; ++i) router_.subscribe(unsigned(i % 3), SubscriberId(i), on("a"));
  std::vector<StepId> steps;
  for (int i = 0; i < 5; ++i) steps.push_back(append("a"));
  router_.answered(steps);
  for (uint64_t i = 0; i < 3000; ++i) {
    ASSERT_THAT(inbox_.ids(unsigned(i % 3), SubscriberId(i)), ElementsAre(1, 2, 3, 4, 5));
  }
  EXPECT_EQ(formatted_, 5);
}

// The callback stands for another thread that comes when part of the batch has been matched.
TEST(RouterTurns, ComingInTheMiddleOfAFanOutTakesNothingFromAnybody) {
  EventLog log(1);
  events_testing::Inbox inbox;
  Router* router = nullptr;
  Subscribed resumed;
  Router on_stack(log, events_testing::format_id, [&](unsigned loop, std::vector<Delivery>&& deliveries) {
    if (router->count() == 3000) {
      resumed = router->resume(0, SubscriberId(9001), Filter::everything(), 0);
      router->subscribe(0, SubscriberId(9002), Filter::everything());
    }
    inbox.deliver()(loop, std::move(deliveries));
  });
  router = &on_stack;
  for (uint64_t i = 0; i < 3000; ++i) router->subscribe(0, SubscriberId(i), Filter::everything());
  const std::vector<Event> events(5, event_on("a"));
  router->answered(log.append(events, 1));
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_THAT(inbox.ids(0, SubscriberId(i)), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(events_testing::ids_of(resumed.backlog), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(inbox.ids(0, SubscriberId(9001)), IsEmpty());
  EXPECT_THAT(inbox.ids(0, SubscriberId(9002)), IsEmpty());
}

TEST_F(RouterTest, S31_WithADurableStoreEventsAreDeliveredWhenTheyAreSafe) {
  EventLog log(1, {.durable_store = true});
  Router router(log, events_testing::format_id, inbox_.deliver());
  router.subscribe(0, kAlice, Filter::everything());
  const Event event = event_on("a");
  router.answered(log.append({&event, 1}, 10));
  EXPECT_THAT(inbox_.ids(0, kAlice), IsEmpty());
  router.set_durable(10);
  EXPECT_THAT(inbox_.ids(0, kAlice), ElementsAre(1));
}

}  // namespace
}  // namespace turnstile
