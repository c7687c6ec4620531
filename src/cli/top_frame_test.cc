// What top shows.
#include "cli/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace turnstile::cli {
namespace {

using testing::HasSubstr;

LaneStatus lane(const std::string& resource, uint32_t waiters, const std::string& oldest) {
  LaneStatus out;
  out.operation = "pull";
  out.resource = resource;
  out.state = "held";
  out.holder = HolderStatus{.node_id = "n", .since = "2026-11-16T01:00:00Z"};
  if (waiters > 0) out.queue = {WaiterStatus{.node_id = "w-" + resource, .position = 1, .since = oldest}};
  out.queue_length = waiters;
  return out;
}

TopSight sight(std::string_view metrics, const char* now) {
  TopSight out;
  out.server = {.server = "http://here", .version = "1.2.3", .metrics = Metrics::parse(metrics)};
  out.now = *parse_time(now);
  out.lanes = {lane("cold", 0, ""), lane("warm", 2, "2026-11-16T01:00:10Z"),
               lane("hot", 7, "2026-11-16T01:00:30Z")};
  return out;
}

TEST(TopFrame, TheHottestComeFirstAndTheOldestWaiterIsNamed) {
  const std::string frame = top_frame(sight("turnstile_waiters 9\n", "2026-11-16T01:01:00Z"), nullptr, {});
  EXPECT_LT(frame.find(" hot "), frame.find(" warm "));
  EXPECT_LT(frame.find(" warm "), frame.find(" cold "));
  EXPECT_THAT(frame, HasSubstr("oldest waiter: w-warm for 50s"));
  EXPECT_THAT(frame, HasSubstr("waiting 9"));
  EXPECT_THAT(frame, HasSubstr("grants -"));
}

TEST(TopFrame, RatesAreDifferencesOverTimeAndARestartIsNotNegative) {
  const TopSight before =
      sight("turnstile_grants_total 100\nturnstile_skips_total 50\n", "2026-11-16T01:01:00Z");
  const TopSight after =
      sight("turnstile_grants_total 300\nturnstile_skips_total 10\n", "2026-11-16T01:01:02Z");
  const std::string frame = top_frame(after, &before, {});
  EXPECT_THAT(frame, HasSubstr("grants 100/s"));
  EXPECT_THAT(frame, HasSubstr("skips 0/s"));
}

TEST(TopFrame, ItFitsTheTerminal) {
  const std::string frame = top_frame(sight("", "2026-11-16T01:01:00Z"), nullptr, {.width = 30, .height = 6});
  EXPECT_EQ(std::count(frame.begin(), frame.end(), '\n'), 6);
  EXPECT_THAT(frame, HasSubstr(" hot "));
  size_t begin = 0;
  for (size_t end; (end = frame.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(display_width(std::string_view(frame).substr(begin, end - begin)), 30U);
  }
}

}  // namespace
}  // namespace turnstile::cli
