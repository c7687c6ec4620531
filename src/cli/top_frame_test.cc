// What top shows.
#include "cli/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/wall_time.h"

namespace turnstile::cli {
namespace {

using testing::HasSubstr;

WallTime at(const std::string& text) { return client::parse_wall_time(text).value_or(WallTime{}); }

LaneStatus lane(const std::string& resource, uint32_t waiters, const std::string& oldest) {
  LaneStatus out;
  out.operation = "pull";
  out.resource = resource;
  out.state = "held";
  out.holder = HolderStatus{.node_id = "n", .since = at("2026-11-16T01:00:00Z")};
  if (waiters > 0) out.queue = {WaiterStatus{.node_id = "w-" + resource, .position = 1, .since = at(oldest)}};
  out.queue_length = waiters;
  return out;
}

TopSight sight(std::string_view metrics, const char* now) {
  TopSight out;
  out.server = {.server = "http://here", .version = "1.2.3", .metrics = Metrics::parse(metrics)};
  out.now = at(now);
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

TEST(TopFrame, NumbersThatThisCredentialMayNotSeeAreADashAndNotZero) {
  TopSight before = sight("", "2026-11-16T01:01:00Z"), after = sight("", "2026-11-16T01:01:02Z");
  before.server.hidden = after.server.hidden = true;
  const std::string frame = top_frame(after, &before, {});
  EXPECT_THAT(frame, HasSubstr("held -  waiting -  grants -"));
  EXPECT_THAT(frame, HasSubstr(" hot ")) << "the lanes are there";
}

std::vector<std::string> lines_of(const std::string& frame) {
  std::vector<std::string> lines(1);
  for (const char c : frame) c == '\n' ? lines.emplace_back().clear() : lines.back().push_back(c);
  return lines;
}

TopSight crowded(uint32_t lanes) {
  TopSight out = sight("", "2026-11-16T01:01:00Z");
  out.lanes.clear();
  for (uint32_t i = 0; i < lanes; ++i) {
    out.lanes.push_back(
        lane("registry.example/日本語のイメージ/絵文字🙂/" + std::string(60, 'x') + std::to_string(i), i % 3,
             "2026-11-16T01:00:10Z"));
    out.lanes.back().holder->node_id = "a-node-with-quite-a-long-name-" + std::to_string(i);
    out.lanes.back().holder->done = 42'000'000 + i;
    out.lanes.back().holder->total = 100'000'000;
  }
  return out;
}

TEST(TopFrame, ItFitsEveryTerminal) {
  for (const uint32_t lanes : {0U, 3U, 19U, 20U, 500U}) {
    for (const TopSize size : {TopSize{.width = 80, .height = 24}, TopSize{.width = 30, .height = 6},
                               TopSize{.width = 200, .height = 50}, TopSize{.width = 1, .height = 1}}) {
      const auto lines = lines_of(top_frame(crowded(lanes), nullptr, size));
      EXPECT_LE(lines.size(), size.height) << lanes;
      for (const std::string& line : lines) EXPECT_LE(display_width(line), size.width) << line;
    }
  }
}

TEST(TopFrame, With80ColumnsTheLastOnesAreThereToo) {
  const auto lines = lines_of(top_frame(crowded(3), nullptr, {.width = 80, .height = 24}));
  EXPECT_THAT(lines[4], HasSubstr("FOR"));
  EXPECT_THAT(lines[4], HasSubstr("PROGRESS"));
  EXPECT_THAT(lines[5], HasSubstr("1m"));
  EXPECT_THAT(lines[5], HasSubstr("42% (42.0M of 100.0M)"));
}

TEST(TopFrame, ColumnsStandUnderTheirHeadsWhateverTheCharacters) {
  TopSight mixed = sight("", "2026-11-16T01:01:00Z");
  mixed.lanes = {lane("日本", 0, ""), lane("abcd", 0, ""), lane("🙂🙂", 0, ""),
                 lane("e\u0301e\u0301ee", 0, "")};
  const auto lines = lines_of(top_frame(mixed, nullptr, {}));
  const size_t holder = lines[4].find("HOLDER");
  for (size_t i = 5; i < 9; ++i)
    EXPECT_EQ(display_width(lines[i].substr(0, lines[i].find("  n "))) + 2, holder);
}

TEST(TopFrame, WhatHasNoRoomIsCounted) {
  const auto lines = lines_of(top_frame(crowded(30), nullptr, {.width = 80, .height = 24}));
  ASSERT_EQ(lines.size(), 24U);
  EXPECT_EQ(lines.back(), "12 more");
  EXPECT_EQ(lines_of(top_frame(crowded(19), nullptr, {.width = 80, .height = 24})).size(), 24U);
  EXPECT_THAT(top_frame(crowded(19), nullptr, {.width = 80, .height = 24}), testing::Not(HasSubstr("more")));
}

TEST(TopFrame, KeysChooseTheOrder) {
  TopSight some = sight("", "2026-11-16T01:01:00Z");
  some.lanes[0].holder->since = at("2026-11-16T00:00:00Z");  // cold
  some.lanes[1].holder->node_id = "a";                       // warm
  const auto first = [&](char key) {
    return lines_of(top_frame(some, nullptr, {}, order_of(key).value()))[5];
  };
  EXPECT_THAT(first('w'), HasSubstr(" hot "));
  EXPECT_THAT(first('a'), HasSubstr(" cold "));
  EXPECT_THAT(first('r'), HasSubstr(" cold "));
  EXPECT_THAT(first('h'), HasSubstr(" warm "));
  EXPECT_FALSE(order_of('x'));
}

}  // namespace
}  // namespace turnstile::cli
