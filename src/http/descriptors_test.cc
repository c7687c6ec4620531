#include "http/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace turnstile::http {
namespace {

TEST(Descriptors, AreEnoughForAllThatIsWantedOnAUsualMachine) {
  const Room room = divide({.limit = 1'048'576, .open = 20}, 60'000);
  EXPECT_EQ(room.served, 60'000u);
  EXPECT_EQ(room.refused, 256u);
}

TEST(Descriptors, AreNeverAllTakenByConnections) {
  for (size_t limit = 0; limit < 3000; ++limit) {
    const Room room = divide({.limit = limit, .open = 20}, 60'000);
    if (limit >= 20 + kReservedDescriptors + 2) {
      EXPECT_GT(room.served, 0u) << limit;
      EXPECT_GT(room.refused, 0u) << limit;
      EXPECT_EQ(20 + kReservedDescriptors + room.served + room.refused, limit) << "none is wasted";
    } else {
      EXPECT_EQ(room.served, 0u) << limit;
    }
  }
}

TEST(Descriptors, GiveNoMoreThanIsWanted) { EXPECT_EQ(divide({.limit = 1000, .open = 20}, 7).served, 7u); }

TEST(Descriptors, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const Descriptors claimed = claim_descriptors();
  EXPECT_EQ(claimed.limit, before.rlim_max);
  EXPECT_GE(claimed.open, 3u);
  EXPECT_LT(claimed.open, 100u);
}

}  // namespace
}  // namespace turnstile::http
