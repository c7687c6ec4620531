#include "base/hash.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(Hash, Fnv1aGivesThePublishedValues) {
  EXPECT_EQ(fnv1a_32(""), 0x811c9dc5u);
  EXPECT_EQ(fnv1a_32("a"), 0xe40c292cu);
  EXPECT_EQ(fnv1a_32("foobar"), 0xbf9cf968u);
}

}  // namespace
}  // namespace turnstile
