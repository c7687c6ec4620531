// Hints about operation names: the typing mistakes that make everybody run a command.
#include "cli/operation_hint.h"

#include <gtest/gtest.h>

namespace turnstile::cli {
namespace {

TEST(OperationHint, NamesThatLookMistypedAreFound) {
  for (const char* typed : {"Pull", "PULL", "pul", "pulll", "pulls", "plul", "bull", "Pul"})
    EXPECT_EQ(meant_operation(typed), "pull") << typed;
  EXPECT_EQ(meant_operation("Once"), "once");
  EXPECT_EQ(meant_operation("updat"), "update");
  EXPECT_EQ(meant_operation("detele"), "");  // two places
  EXPECT_EQ(meant_operation("deltee"), "delete");
}

TEST(OperationHint, KnownNamesAndOthersOfOnesOwnAreLeftAlone) {
  for (const char* typed :
       {"pull", "update", "delete", "once", "image-layer", "build", "migrate", "p", "", "pull:x"})
    EXPECT_EQ(hint_about(typed, "runs the command"), "") << typed;
}

TEST(OperationHint, WhoHasWaitedForAPlainMutexHearsHowOthersWouldSkip) {
  EXPECT_NE(hint_after_waiting("image-layer").find("image-layer:on_success=share"), std::string::npos);
  EXPECT_EQ(hint_after_waiting("update"), "");
}

}  // namespace
}  // namespace turnstile::cli
