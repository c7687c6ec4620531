#include "api/event_id.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(LastEventId, IsTheNumberThatWasSent) {
  EXPECT_EQ(parse_last_event_id("17"), 17u);
  EXPECT_EQ(parse_last_event_id("18446744073709551615"), UINT64_MAX);
}

TEST(LastEventId, IsZeroWhereItIsNoneOfOurIds) {
  for (const char* text : {"0", "-1", "+1", " 1", "1 ", "1.5", "abc", "18446744073709551616"})
    EXPECT_EQ(parse_last_event_id(text), 0u) << text;
}

TEST(LastEventId, IsNothingWithoutTheHeader) { EXPECT_EQ(parse_last_event_id(""), std::nullopt); }

}  // namespace
}  // namespace turnstile
