// How durations are written.
#include "base/duration.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(Durations, AreReadAndShownTheSameWay) {
  for (const char* text : {"0", "500ms", "10s", "5m", "1h", "90s", "2d"})
    EXPECT_EQ(show_duration(*parse_duration(text)), text);
  for (const char* text : {"", "5", "-1s", "1y", "s", "1e99h", "nan"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

}  // namespace
}  // namespace turnstile
