#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(Rfc3339, WritesUtcWithMicroseconds) {
  std::string out;
  append_rfc3339(out, Time(std::chrono::seconds(951782399) + std::chrono::microseconds(7)));
  EXPECT_EQ(out, "2000-02-28T23:59:59.000007Z");
}

}  // namespace
}  // namespace turnstile
