// What is counted for which operation.
#include "service/metrics.h"

#include <gtest/gtest.h>

#include <array>

namespace turnstile {
namespace {

OperationRules named(std::string name) {
  OperationRules rules;
  rules.name = std::move(name);
  return rules;
}

Measure granted(std::string_view operation) { return {MeasureKind::granted, operation, {}, 1}; }

TEST(Metrics, NamesThatAreNotConfiguredAreCountedTogether) {
  Metrics metrics({named("pull")});
  metrics.observe(std::array{granted("pull"), granted(""), granted("")});
  const std::vector<OperationSums> sums = metrics.sums();
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].operation, "pull");
  EXPECT_EQ(sums[0].held, 1u);
  EXPECT_EQ(sums[1].operation, "other");
  EXPECT_EQ(sums[1].held, 2u);
}

TEST(Metrics, S58_AConfiguredOperationThatIsCalledOtherIsCountedOnce) {
  Metrics metrics({named("other"), named("pull")});
  metrics.observe(std::array{granted("other"), granted("pull"), granted("")});
  const std::vector<OperationSums> sums = metrics.sums();
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums.back().operation, "other");
  EXPECT_EQ(sums.back().held, 2u);
  EXPECT_EQ(metrics.totals().held, 3u);
}

}  // namespace
}  // namespace turnstile
