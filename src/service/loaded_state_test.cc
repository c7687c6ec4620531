// A standby's state: what many records leave behind is no more than what is there.
#include "service/loaded_state.h"

#include <gtest/gtest.h>

#include <string>

namespace turnstile {
namespace {

using std::chrono::seconds;

class LoadedStateTest : public ::testing::Test {
 protected:
  Record record(RecordKind kind, uint64_t number, Time until = {}) {
    name_ = "r" + std::to_string(number);
    Record made;
    made.kind = kind;
    made.lane.resource = ResourceId(name_);
    made.lane.operation = OperationName("own");
    made.who.node = NodeId("n");
    made.number = number;
    made.until = until;
    return made;
  }

  static constexpr Time kNow{std::chrono::hours(24 * 365 * 55)};
  std::string name_;
  LoadedState state_{EngineSettings()};
};

TEST_F(LoadedStateTest, WhatHasRunOutDoesNotPileUpWhileALogGoesOnAndOn) {
  for (uint64_t i = 1; i <= 60'000; ++i) {
    state_.load(record(RecordKind::hold_set, i, kNever));
    if (i % 100 == 0) continue;  // these are held
    state_.load(record(RecordKind::hold_erased, i));
    // Remembered for a while, of whose end no record tells.
    state_.load(record(RecordKind::released_set, i, kNow + seconds(i)));
    state_.passed(kNow + seconds(i));
  }
  EXPECT_LT(state_.resource_count(), 25'000u);
  EXPECT_GE(state_.resource_count(), 600u);
}

TEST_F(LoadedStateTest, MarksOfEarlierLivesAreTheLatestOnes) {
  for (const uint64_t number : {5, 9, 7}) state_.load(record(RecordKind::event_mark, number));
  for (const uint64_t number : {3, 2}) state_.load(record(RecordKind::life_mark, number));
  EXPECT_EQ(state_.last_event(), 9u);
  EXPECT_EQ(state_.last_life(), 3u);
}

}  // namespace
}  // namespace turnstile
