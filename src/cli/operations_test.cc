// X6: programs that name an operation differently do not exclude each other.
#include "turnstile/operations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace turnstile::cli {

std::vector<std::string> operations_of_server();

namespace {

TEST(Operations, X6_TheLibrarysNamesAreThoseOfTheServersDefaultTable) {
  EXPECT_EQ(operations_of_server(), (std::vector<std::string>{operations::kPull, operations::kUpdate,
                                                              operations::kDelete, operations::kOnce}));
}

}  // namespace
}  // namespace turnstile::cli
