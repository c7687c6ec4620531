#include "base/did_you_mean.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(DidYouMean, ASlipIsRecognisedAndAnotherWordIsNot) {
  const std::vector<std::string> words = {"--retain-completed", "--retain-released", "--store", "--help"};
  EXPECT_EQ(did_you_mean("--retain-complete", words), "; did you mean --retain-completed?");
  EXPECT_EQ(did_you_mean("--stroe", words), "; did you mean --store?");
  EXPECT_EQ(did_you_mean("exce", {"list", "exec"}), "; did you mean exec?");
  EXPECT_EQ(did_you_mean("--keep", words), "; did you mean --help?") << "two letters of six";
  EXPECT_EQ(did_you_mean("--port", words), "");
  EXPECT_EQ(did_you_mean("--frequency", words), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

}  // namespace
}  // namespace turnstile
