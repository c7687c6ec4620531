// Section 4 of docs/semantics.md: the rules of operations are data.
#include "engine/operations.h"

#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Operations, Section4_PullSharesAndAddsItsNode) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped);
}

TEST(Operations, Section4_UpdateHandsOffAndLeavesReferencesAlone) {
  TestEngine t;
  t.add_reference("r", "n1");
  t.lock("update", "r", "n2");
  t.succeed("update", "r", "n2");
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
  EXPECT_EQ(t.lock("update", "r", "n3").state, LockState::acquired);
}

TEST(Operations, Section4_DeleteSharesAndClearsAllReferences) {
  TestEngine t;
  t.lock("delete", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n2");
  ASSERT_THAT(t.references("r"), ElementsAre("n2"));
  t.succeed("delete", "r", "n1");
  EXPECT_THAT(t.references("r"), IsEmpty());
  EXPECT_EQ(t.lock("delete", "r", "n3").state, LockState::skipped);
}

TEST(Operations, Section4_AFailureChangesNoReferences) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail("pull", "r", "n1", "x");
  EXPECT_THAT(t.references("r"), IsEmpty());
  t.lock("delete", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n2");
  t.fail("delete", "r", "n1", "x");
  EXPECT_THAT(t.references("r"), ElementsAre("n2"));
}

TEST(Operations, Section4_AnyOtherTypeIsAPlainMutex) {
  TestEngine t;
  t.add_reference("r", "n9");
  t.lock("pull", "s", "n1");
  t.succeed("pull", "s", "n1");
  EXPECT_EQ(t.lock("migrate", "r", "n1").state, LockState::acquired) << "references do not matter";
  t.lock("migrate", "r", "n2");
  t.succeed("migrate", "r", "n1");
  EXPECT_EQ(t.holder("migrate", "r"), "n2") << "it hands off";
  EXPECT_THAT(t.references("r"), ElementsAre("n9"));
  t.lock("migrate", "s", "n1");
  t.succeed("migrate", "s", "n1");
  EXPECT_EQ(t.status("pull", "s").state, LaneState::completed) << "it voids nothing";
}

TEST(Operations, Section4_WhoeverWantsUpdatesToBeSharedSetsIt) {
  EngineSettings settings;
  settings.operations[1].on_success = OnSuccess::share;
  TestEngine t(settings);
  t.lock("update", "r", "n1");
  t.lock(Ask("update", "r", "n2").poll(2));
  t.succeed("update", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
}

TEST(Operations, Section4_AnOperationOfTheUsersOwnCanHaveRules) {
  EngineSettings settings;
  settings.operations.push_back({"unpack", OnSuccess::share, OnReferences::add, Guard::refuse, false});
  TestEngine t(settings);
  t.lock("unpack", "r", "n1");
  t.succeed("unpack", "r", "n1");
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
  t.pass(300'000);
  EXPECT_EQ(t.lock("unpack", "r", "n2").refusal, Refusal::referenced);
}

TEST(Operations, Section4_WithoutConfiguredOperationsPullIsAPlainMutexToo) {
  EngineSettings settings;
  settings.operations.clear();
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.holder("pull", "r"), "n2");
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(Operations, NamesBeyondTheLimitAreRefusedAndKnownOnesStay) {
  TestEngine t;
  Effects out;
  for (size_t i = 0; i < Operations::kMostNames; ++i) {
    const std::string name = fmt::format("operation-{}", i);
    out.clear();
    t.engine.lock(Ask(name, name, "n1").command, t.now, out);
  }
  const LockAnswer answer = t.lock("one-too-many", "r", "n1");
  EXPECT_EQ(answer.state, LockState::refused);
  EXPECT_EQ(answer.refusal, Refusal::too_many_operations);
  EXPECT_EQ(t.lock("pull", "s", "n1").state, LockState::acquired);
  EXPECT_EQ(t.lock("operation-0", "s", "n1").state, LockState::acquired);
  EXPECT_THAT(t.subscribe("one-too-many", "r", "n1", 5), IsEmpty());
}

TEST(Operations, APointerStaysValidWhileNamesAreAdded) {
  Operations operations(default_operations(false));
  const Operation* pull = operations.find("pull");
  const Operation* first = operations.find_or_add("first");
  for (int i = 0; i < 5000; ++i) operations.find_or_add(fmt::format("operation-{}", i));
  EXPECT_EQ(operations.find("pull"), pull);
  EXPECT_EQ(operations.find_or_add("first"), first);
  EXPECT_EQ(first->rules.name, "first");
  EXPECT_EQ(operations.find("never seen"), nullptr);
}

TEST(Operations, OnlyConfiguredNamesAreCountedApart) {
  Operations operations(default_operations(false));
  EXPECT_EQ(operations.find("pull")->metric_name(), "pull");
  EXPECT_EQ(operations.find_or_add("job")->metric_name(), "");
}

}  // namespace
}  // namespace turnstile
