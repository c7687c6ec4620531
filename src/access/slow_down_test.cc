#include "access/slow_down.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace turnstile::access {
namespace {

using std::chrono::milliseconds, std::chrono::seconds, std::chrono::minutes;
const Time kNow{std::chrono::hours(1)};

TEST(SlowDown, AFewFailuresAreFreeThenEachWaitsTwiceAsLong) {
  SlowDown slow(1);
  for (unsigned i = 0; i < SlowDown::kFree; ++i) EXPECT_EQ(slow.failed("10.0.0.1", kNow), Duration(0));
  EXPECT_EQ(slow.failed("10.0.0.1", kNow), milliseconds(100));
  EXPECT_EQ(slow.failed("10.0.0.1", kNow), milliseconds(200));
  for (int i = 0; i < 100; ++i) EXPECT_LE(slow.failed("10.0.0.1", kNow), SlowDown::kLongest);
  EXPECT_EQ(slow.failed("10.0.0.1", kNow), SlowDown::kLongest);
}

TEST(SlowDown, OthersFromElsewhereAreNotAffected) {
  SlowDown slow(1);
  for (int i = 0; i < 100; ++i) (void)slow.failed("10.0.0.1", kNow);
  EXPECT_EQ(slow.failed("10.0.0.2", kNow), Duration(0));
  EXPECT_EQ(slow.failed("fe80::1", kNow), Duration(0));
}

TEST(SlowDown, AWholeNetworkOfIPv6IsOneAddress) {
  SlowDown slow(1);
  for (int i = 0; i < 100; ++i) (void)slow.failed(fmt::format("2001:db8:1:1::{:x}", i), kNow);
  EXPECT_EQ(slow.failed("2001:db8:1:1:ffff::1", kNow), SlowDown::kLongest);
  EXPECT_EQ(slow.failed("2001:db8:1:2::1", kNow), Duration(0));
}

TEST(SlowDown, QuietIsRewarded) {
  SlowDown slow(1);
  for (int i = 0; i < 8; ++i) (void)slow.failed("10.0.0.1", kNow);
  EXPECT_EQ(slow.failed("10.0.0.1", kNow + 2 * SlowDown::kForgets), milliseconds(200));  // 8 - 2 + 1 = 7
  EXPECT_EQ(slow.failed("10.0.0.1", kNow + minutes(60)), Duration(0));
}

TEST(SlowDown, ForgetsTheQuietestWhenFullAndNeverGrows) {
  SlowDown slow(7, 4);  // sixteen places
  for (int i = 0; i < 20; ++i) (void)slow.failed("10.0.0.1", kNow + seconds(1));
  for (int i = 0; i < 1000; ++i)
    (void)slow.failed(fmt::format("10.1.{}.{}", i / 250, i % 250), kNow + seconds(2));
  EXPECT_EQ(slow.failed("10.0.0.1", kNow + seconds(3)), Duration(0));
}

}  // namespace
}  // namespace turnstile::access
