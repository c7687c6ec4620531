// Ids, the publication horizon, and what can be read back.
#include "events/event_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "events/testing.h"

namespace turnstile {
namespace {

using events_testing::event_on;
using events_testing::ids_of;

// One event that is one step.
StepId append_one(EventLog& log, std::string_view resource, uint64_t sequence) {
  const Event event = event_on(resource);
  return log.append({&event, 1}, sequence);
}
bool answered(EventLog& log, StepId step) { return log.answered({&step, 1}); }

TEST(EventLog, S28_IdsIncreaseByOneFromTheFirstGiven) {
  EventLog log(1000);
  EXPECT_EQ(log.last_id(), 999u);
  const Event three[] = {event_on("a"), event_on("b"), event_on("c")};
  log.append(three, 1);
  EXPECT_EQ(log.last_id(), 1002u);
  append_one(log, "d", 2);
  EXPECT_EQ(log.last_id(), 1003u);
}

TEST(EventLog, AStepWithoutEventsIsNoStep) {
  EventLog log(1);
  EXPECT_EQ(log.append({}, 1), StepId::none);
  EXPECT_FALSE(answered(log, StepId::none));
  EXPECT_EQ(log.last_id(), 0u);
  EXPECT_EQ(log.open_steps(), 0u);
}

TEST(EventLog, S30_NothingIsPublishedBeforeItsStepIsReleased) {
  EventLog log(1);
  const StepId step = append_one(log, "a", 1);
  EventBatch batch;
  EXPECT_TRUE(log.read(0, nullptr, {}, batch).complete);
  EXPECT_TRUE(batch.empty());
  (void)answered(log, step);
  (void)log.read(0, nullptr, {}, batch);
  EXPECT_EQ(ids_of(batch), std::vector<uint64_t>{1});
}

TEST(EventLog, S30_TheHorizonIsTheLongestPrefixOfReleasedStepsWhateverTheOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    EventLog log(1);
    std::vector<StepId> steps;
    std::vector<uint64_t> last_event;
    for (uint64_t step = 0; step < 12; ++step) {
      const std::vector<Event> events(1 + random() % 3, event_on("r"));
      steps.push_back(log.append(events, step));
      last_event.push_back(log.last_id());
    }
    std::vector<size_t> order(steps.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<bool> released(steps.size(), false);
    for (const size_t index : order) {
      (void)answered(log, steps[index]);
      released[index] = true;
      const auto prefix = size_t(std::find(released.begin(), released.end(), false) - released.begin());
      ASSERT_EQ(log.position().published, prefix == 0 ? 0 : last_event[prefix - 1]);
    }
    ASSERT_EQ(log.open_steps(), 0u);
  }
}

TEST(EventLog, S31_WithADurableStoreAReleasedStepStillWaitsUntilItIsDurable) {
  EventLog log(1, {.durable_store = true});
  const StepId first = append_one(log, "a", 10);
  const StepId second = append_one(log, "b", 11);
  (void)answered(log, first);
  (void)answered(log, second);
  EXPECT_EQ(log.position().published, 0u);
  (void)log.set_durable(10);
  EXPECT_EQ(log.position().published, 1u);
  (void)log.set_durable(20);
  EXPECT_EQ(log.position().published, 2u);
}

TEST(EventLog, S31_DurableWithoutTheAnswerWrittenIsNotEnough) {
  EventLog log(1, {.durable_store = true});
  const StepId step = append_one(log, "a", 10);
  (void)log.set_durable(10);
  EXPECT_EQ(log.position().published, 0u);
  (void)answered(log, step);
  EXPECT_EQ(log.position().published, 1u);
}

TEST(EventLog, AnnouncesWhatIsPublishedOnceAndOnlyToListeners) {
  EventLog log(1);
  EXPECT_FALSE(answered(log, append_one(log, "a", 1)));
  (void)log.listen();
  EXPECT_FALSE(answered(log, StepId::none)) << "what was published before counts as known";
  const StepId b = append_one(log, "b", 2);
  EXPECT_TRUE(answered(log, b));
  EXPECT_FALSE(answered(log, b));
  log.stop_listening();
  EXPECT_FALSE(answered(log, append_one(log, "c", 3)));
}

TEST(EventLog, S28_SaysThatSomethingIsLostExactlyWhenItIs) {
  EventLog log(100, {.max_events = 4});
  const auto lost_after = [&](uint64_t id) {
    EventBatch batch;
    return log.read(id, nullptr, {}, batch).lost;
  };
  EXPECT_EQ(lost_after(99), 0u);
  EXPECT_EQ(lost_after(98), 0u) << "what a reset at the beginning is given";
  EXPECT_EQ(lost_after(97), 99u) << "an id of an earlier life";
  EXPECT_EQ(lost_after(0), 99u);
  for (uint64_t i = 0; i < 10; ++i) (void)answered(log, append_one(log, "r", i));
  EXPECT_EQ(lost_after(104), 105u) << "105 is overwritten";
  EXPECT_EQ(lost_after(105), 0u);
  EXPECT_EQ(lost_after(109), 0u);
}

TEST(EventLog, IsBoundedByBytes) {
  EventLog log(1, {.max_events = 1000, .max_bytes = 4096});
  const std::string large(1000, 'x');
  for (uint64_t i = 0; i < 20; ++i) (void)answered(log, append_one(log, large, i));
  EventBatch batch;
  EXPECT_EQ(log.read(1, nullptr, {}, batch).lost, 17u);
  EXPECT_EQ(ids_of(batch), (std::vector<uint64_t>{18, 19, 20}));
}

TEST(EventLog, AReadingSaysWhatIsLostAndGoesOnBehindIt) {
  EventLog log(1, {.max_events = 4});
  for (uint64_t i = 0; i < 10; ++i) (void)answered(log, append_one(log, "r", i));
  EventBatch batch;
  const EventLog::Reading reading = log.read(2, nullptr, {}, batch);
  EXPECT_EQ(reading.lost, 6u);
  EXPECT_TRUE(reading.complete);
  EXPECT_EQ(ids_of(batch), (std::vector<uint64_t>{7, 8, 9, 10}));
}

TEST(EventLog, AReadingStopsAtItsLimitsAndSaysHowFarItGot) {
  EventLog log(1);
  for (uint64_t i = 0; i < 10; ++i) (void)answered(log, append_one(log, i % 2 == 0 ? "even" : "odd", i));
  const Filter odd = Filter::lane(events_testing::lane("pull", "odd"));
  EventBatch batch;
  EventLog::Reading reading = log.read(0, &odd, {.events = 3}, batch);
  EXPECT_EQ(ids_of(batch), (std::vector<uint64_t>{2, 4, 6}));
  EXPECT_EQ(reading.reached, 6u);
  EXPECT_FALSE(reading.complete);
  batch.clear();
  reading = log.read(0, &odd, {.bytes = 1}, batch);
  EXPECT_EQ(batch.size(), 1u) << "one event always fits, so that a reader gets on";
}

// A step that nobody ever answers must not keep all streams silent for ever, nor memory grow.
TEST(EventLog, AStepWhoseEventsAreAllOverwrittenIsNoLongerInTheWay) {
  EventLog log(1, {.max_events = 8});
  (void)log.listen();
  const StepId forgotten = append_one(log, "r", 0);
  for (uint64_t i = 1; i <= 7; ++i) (void)answered(log, append_one(log, "r", i));
  EXPECT_EQ(log.position().published, 0u);
  EXPECT_TRUE(answered(log, append_one(log, "r", 8)));
  EXPECT_EQ(log.position().published, 9u);
  EXPECT_EQ(log.open_steps(), 0u);
  EXPECT_FALSE(answered(log, forgotten));
  for (uint64_t i = 9; i < 1000; ++i) append_one(log, "r", i);
  EXPECT_LE(log.open_steps(), 8u);
}

TEST(EventLogDeathTest, ReleasingAStepThatNeverWasIsABug) {
  EventLog log(1);
  EXPECT_DEATH((void)answered(log, StepId(1)), "only steps that were opened");
}

}  // namespace
}  // namespace turnstile
