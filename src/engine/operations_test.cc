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
  out.clear();
  const LockAnswer answer = t.engine.lock(Ask("one-too-many", "r", "n1").command, t.now, out);
  EXPECT_EQ(out.sequence, t.sink.latest()) << "it waits as a read does (S42)";
  EXPECT_EQ(answer.state, LockState::refused);
  EXPECT_EQ(answer.refusal, Refusal::too_many_operations);
  EXPECT_EQ(t.lock("pull", "s", "n1").state, LockState::acquired);
  EXPECT_EQ(t.lock("operation-0", "s", "n1").state, LockState::acquired);
  bool began = false;
  const SubscribeCommand bond{lane_of("one-too-many", "r"), requester("n1"), BondId(5)};
  const SubscribeAnswer refused = t.engine.subscribe(bond, t.now, t.scratch(), [&] { began = true; });
  EXPECT_EQ(refused.refusal, Refusal::too_many_operations);
  EXPECT_FALSE(began);
  EXPECT_FALSE(t.has_bond("one-too-many", "r", "n1", 5));
}

TEST(Operations, APointerStaysValidWhileItIsUsedAndNamesComeAndGo) {
  Operations operations(default_operations(false));
  const OperationUse pull = operations.use("pull");
  const OperationUse first = operations.use("first");
  for (int i = 0; i < 5000; ++i) operations.use(fmt::format("operation-{}", i));
  EXPECT_EQ(operations.size(), 5005u);
  operations.forget_unused();
  EXPECT_EQ(operations.size(), 5u) << "four are configured, one is used";
  EXPECT_EQ(operations.use("pull").get(), pull.get());
  EXPECT_EQ(operations.use("first").get(), first.get());
  EXPECT_EQ(first.get()->rules.name, "first");
}

TEST(Operations, OnlyConfiguredNamesAreCountedApart) {
  Operations operations(default_operations(false));
  EXPECT_EQ(operations.use("pull").get()->metric_name(), "pull");
  EXPECT_EQ(operations.use("job").get()->metric_name(), "");
}

TEST(OperationNames, LookingAddsNone) {
  Operations names(default_operations(false));
  EXPECT_EQ(names.size(), 4u);
  TestEngine t;
  for (size_t i = 0; i < Operations::kMostNames + 100; ++i) {
    const std::string name = fmt::format("made-up-{}", i);
    t.engine.subscribe({lane_of(name, "r"), {}, BondId(1)}, t.now, t.scratch(), [] {});
    t.engine.status({lane_of(name, "r"), requester("n")}, t.now, t.scratch());
  }
  EXPECT_EQ(t.lock("another", "r", "n").state, LockState::acquired);
}

TEST(OperationNames, ThoseThatNobodyUsesAnyMoreAreForgotten) {
  EngineSettings settings;
  settings.retain_released = Duration(0);
  TestEngine t(settings);
  for (size_t i = 0; i < 2 * Operations::kMostNames; ++i) {
    const std::string name = fmt::format("job-{}", i);
    LockCommand lock = Ask(name, "r", "n").command;
    ASSERT_EQ(t.engine.lock(lock, t.now, t.scratch()).state, LockState::acquired) << i;
    t.engine.unlock({lock.lane, lock.who, Token::none, true, {}, false}, t.now, t.scratch());
  }
}

TEST(OperationNames, ThoseInUseStayAndANewOneIsRefused) {
  TestEngine t;
  const size_t most = Operations::kMostNames - default_operations(false).size();
  for (size_t i = 0; i < most; ++i)
    t.engine.lock(Ask(fmt::format("job-{}", i), fmt::format("r{}", i), "n").command, t.now, t.scratch());
  EXPECT_EQ(t.lock("one-more", "r", "n").refusal, Refusal::too_many_operations);
  EXPECT_EQ(t.lock("job-7", "r7", "n").state, LockState::acquired) << "known, and asked again";
  t.succeed("job-7", "r7", "n");
  t.pass(60'000);  // its released token is forgotten
  EXPECT_EQ(t.lock("one-more", "r", "n").state, LockState::acquired);
}

TEST(OperationNames, AStoreWithTooManyIsRefusedAndNothingDropped) {
  RecordingSink sink;
  Engine engine(EngineSettings{}, sink, Token::none);
  for (size_t i = 0; i <= Operations::kMostNames; ++i) {
    const std::string operation = fmt::format("job-{}", i), resource = fmt::format("r{}", i);
    Record held;
    held.kind = RecordKind::hold_set;
    held.lane = lane_of(operation, resource);
    held.who = requester("n");
    held.number = i + 1;
    held.until = kNever;
    engine.load(held);
  }
  Effects out;
  const auto loaded = engine.finish_load(Time{ms(1)}, out, [](Effects&) {});
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, ::testing::HasSubstr("10005 operations"));
}

TEST(OperationNames, AMillionThatHaveRunOutMeanwhileDoNotCount) {
  RecordingSink sink;
  Engine engine(EngineSettings{}, sink, Token::none);
  for (size_t i = 0; i <= 2 * Operations::kMostNames; ++i) {
    const std::string operation = fmt::format("job-{}", i);
    Record released;
    released.kind = RecordKind::released_set;
    released.lane = lane_of(operation, "r" + std::to_string(i));
    released.who = requester("n");
    released.number = i + 1;
    released.until = Time{ms(1)};
    engine.load(released);
  }
  Effects out;
  EXPECT_TRUE(engine.finish_load(Time{ms(2)}, out, [](Effects&) {}));
}

}  // namespace
}  // namespace turnstile
