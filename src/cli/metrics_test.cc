// Reading Prometheus' text.
#include "cli/metrics.h"

#include <gtest/gtest.h>

namespace turnstile::cli {
namespace {

TEST(Metrics, ValuesAreSummedOverLabels) {
  const Metrics metrics = Metrics::parse(
      "# HELP turnstile_waiters who waits\n"
      "turnstile_waiters{operation=\"pull\"} 2\n"
      "turnstile_waiters{operation=\"a b\"} 3\n"
      "turnstile_resources 1e+06\n"
      "nonsense\n"
      "broken x\n");
  EXPECT_EQ(metrics.sum("turnstile_waiters"), 5);
  EXPECT_EQ(metrics.sum("turnstile_resources"), 1'000'000);
  EXPECT_EQ(metrics.sum("turnstile_streams"), 0);
}

}  // namespace
}  // namespace turnstile::cli
