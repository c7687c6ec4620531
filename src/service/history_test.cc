#include "service/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace turnstile {
namespace {

using std::chrono::seconds;

constexpr Time kStart = Time(std::chrono::hours(1));

std::vector<uint64_t> grants_of(const History& history) {
  std::vector<uint64_t> found;
  for (const HistoryPoint& point : history.read().points) found.push_back(point.grants);
  return found;
}

TEST(History, APointIsWhatHasHappenedInItsStretchOfTime) {
  History history;
  history.sample({.grants = 100}, kStart);
  EXPECT_TRUE(history.read().points.empty()) << "what was before nobody knows";
  history.sample({.grants = 107}, kStart + seconds(1));
  EXPECT_TRUE(history.read().points.empty()) << "it is not over";
  history.sample({.grants = 110, .skips = 4, .held = 3, .waiting = 2}, kStart + seconds(2));
  history.sample({.grants = 111, .skips = 4, .held = 2, .waiting = 9}, kStart + seconds(4));
  EXPECT_THAT(grants_of(history), testing::ElementsAre(10, 1));
  EXPECT_EQ(history.read().points[0].skips, 4u);
  EXPECT_EQ(history.read().points[1].waiting, 9u);
  EXPECT_EQ(history.read().until, kStart + seconds(4));
}

TEST(History, AStretchThatNobodySawIsOneInWhichNothingHappened) {
  History history;
  history.sample({.grants = 0, .held = 5}, kStart);
  history.sample({.grants = 8, .held = 6}, kStart + seconds(7));
  EXPECT_THAT(grants_of(history), testing::ElementsAre(0, 0, 8));
  EXPECT_EQ(history.read().points[0].held, 5u);
  EXPECT_EQ(history.read().until, kStart + seconds(6)) << "a point ends on a whole step";
}

TEST(History, KeepsTheLatestPointsOnly) {
  History history;
  for (uint64_t i = 0; i <= History::kPoints + 10; ++i)
    history.sample({.grants = i * i}, kStart + i * History::kStep);
  const std::vector<uint64_t> grants = grants_of(history);
  ASSERT_EQ(grants.size(), History::kPoints);
  EXPECT_EQ(grants.back(), 2 * (History::kPoints + 10) - 1);
  history.sample({.grants = 1'000'000}, kStart + std::chrono::hours(24));
  EXPECT_EQ(grants_of(history).size(), History::kPoints);
  EXPECT_EQ(grants_of(history).front(), 0u) << "nothing is left of the day before";
}

TEST(History, AnAverageIsOverTheStretchAndMissingWhereNothingWasMeasured) {
  History history;
  history.sample({.handovers = 10, .handover_seconds = 5}, kStart);
  history.sample({.handovers = 12, .handover_seconds = 5.01}, kStart + seconds(2));
  history.sample({.handovers = 12, .handover_seconds = 5.01}, kStart + seconds(4));
  const std::vector<HistoryPoint> points = history.read().points;
  EXPECT_NEAR(points[0].handover_ms.value_or(0), 5, 0.001);
  EXPECT_FALSE(points[1].handover_ms);
  EXPECT_FALSE(points[0].commit_ms);
}

TEST(History, BeginsAnewWhenTheClockOfALifeIsAnEarlierOne) {
  History history;
  history.sample({.grants = 5}, kStart + seconds(100));
  history.sample({.grants = 6}, kStart + seconds(102));
  history.sample({.grants = 7}, kStart);
  history.sample({.grants = 9}, kStart + seconds(2));
  EXPECT_THAT(grants_of(history), testing::ElementsAre(2));
}

}  // namespace
}  // namespace turnstile
