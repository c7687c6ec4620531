// Section 5 of docs/semantics.md, rules S17 to S20: which nodes use a resource, and that nothing else takes
// memory.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(References, S17_ANodeIsInTheSetOnceHoweverOftenItPulls) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.lock("pull", "r", "n1").state, LockState::skipped);
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").request("b")).state, LockState::skipped);
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
  EXPECT_FALSE(t.add_reference("r", "n1").changed);
}

TEST(References, S17_APullThatSkipsAtOnceAddsItsNodeInTheSameStep) {
  TestEngine t;
  t.add_reference("r", "n1");
  t.lock("pull", "r", "n2");
  EXPECT_THAT(t.references("r"), ElementsAre("n1", "n2"));
}

TEST(References, S17_ASkipToldToALongPollAddsItsNodeInTheSameStep) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(t.references("r"), ElementsAre("n1", "n2"));
}

TEST(References, S17_ASkipAddsItsNodeOnlyWhenItIsTold) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  for (const char* node : {"asks", "polls", "gone"}) t.lock("pull", "r", node);
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
  t.lock("pull", "r", "asks");
  EXPECT_THAT(t.references("r"), ElementsAre("asks", "n1"));
  t.status("pull", "r", "polls");
  EXPECT_THAT(t.references("r"), ElementsAre("asks", "n1", "polls"));
  t.pass(1'000'000);
  EXPECT_THAT(t.references("r"), ElementsAre("asks", "n1", "polls")) << "never for a waiter that has gone";
}

TEST(References, S17_ASkipToldToALongPollThatHasEndedAddsNothing) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.end_poll("pull", "r", "n2", 2);
  t.break_poll("pull", "r", "n3", 3);
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
}

TEST(References, S17_AStatusPollOfSomebodyWhoseWaitDidNotSkipAddsNothing) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.status("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.status("pull", "r", "stranger");
  t.status("pull", "r");
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
}

TEST(References, S17_OnlyOperationsThatAddReferencesDoSoWhenTheySkip) {
  TestEngine t;
  t.lock("delete", "r", "n1");
  t.lock(Ask("delete", "r", "n2").poll(2));
  t.succeed("delete", "r", "n1");
  t.lock("delete", "r", "n3");
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(References, S18_WithReferencesOnTheClientsSideTheServerKeepsNone) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.lock("pull", "r", "n3").state, LockState::skipped) << "by S4 only";
  EXPECT_THAT(t.status("pull", "r").references.nodes, IsEmpty());
  EXPECT_EQ(t.lock("delete", "r", "n4").state, LockState::acquired) << "nothing guards";
  EXPECT_EQ(t.lock(Ask("delete", "r", "n5").dereference()).state, LockState::queued);
}

TEST(References, S18_WithReferencesOnTheClientsSideEveryCallSaysSo) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  EXPECT_EQ(t.add_reference("r", "n1").refusal, Refusal::references_off);
  EXPECT_EQ(t.release_reference("r", "n1").refusal, Refusal::references_off);
  EXPECT_EQ(t.release_node("n1").refusal, Refusal::references_off);
  EXPECT_EQ(t.call([&](Effects& out) { return t.engine.references({ResourceId("r"), {}}, out); }).refusal,
            Refusal::references_off);
  t.lock("delete", "r", "n2");
  EXPECT_EQ(t.add_reference("r", "n1").refusal, Refusal::references_off) << "not busy";
}

TEST(References, S19_ReleaseTakesOneNodeOutAndIsIdempotent) {
  TestEngine t;
  t.add_reference("r", "n1");
  const ReferencesAnswer added = t.add_reference("r", "n2");
  EXPECT_TRUE(added.changed);
  EXPECT_EQ(added.count, 2u);
  const ReferencesAnswer released = t.release_reference("r", "n1");
  EXPECT_TRUE(released.changed);
  EXPECT_EQ(released.count, 1u);
  EXPECT_THAT(released.nodes, ElementsAre("n2"));
  EXPECT_FALSE(t.release_reference("r", "n1").changed);
  EXPECT_FALSE(t.release_reference("unknown", "n1").changed);
}

TEST(References, EveryAnswerNamesTheFirstHundredNodesAndTheCount) {
  TestEngine t;
  for (int i = 0; i < 5000; ++i) t.add_reference("r", fmt::format("n{:05}", i));
  const auto is_cut = [](uint32_t count, std::span<const std::string_view> nodes, uint32_t of = 5000) {
    return count == of && nodes.size() == kMostNamed && nodes.front() == "n00000" && nodes.back() == "n00099";
  };
  const LockAnswer refused = t.lock("delete", "r", "n2");
  EXPECT_EQ(refused.refusal, Refusal::referenced);
  EXPECT_TRUE(is_cut(refused.references.count, refused.references.nodes));
  const LockAnswer dropped = t.lock(Ask("delete", "r", "n00777").dereference());
  EXPECT_EQ(dropped.state, LockState::skipped);
  EXPECT_TRUE(is_cut(dropped.references.count, dropped.references.nodes, 4999));
  const StatusAnswer status = t.status("delete", "r");
  EXPECT_TRUE(is_cut(status.references.count, status.references.nodes, 4999));
  const ReferencesAnswer added = t.add_reference("r", "n00777");
  EXPECT_TRUE(is_cut(added.count, added.nodes));
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").poll(7));
  t.succeed("update", "r", "n1");
  EXPECT_EQ(t.wake(7).references.size(), kMostNamed);
}

TEST(References, TheSetIsReadPageByPage) {
  TestEngine t;
  for (int i = 0; i < 25; ++i) t.add_reference("r", fmt::format("n{:02}", i));
  ReferencesCommand command{ResourceId("r"), NodeId(), 10};
  std::vector<std::string> seen;
  for (bool more = true; more;) {
    const ReferencesAnswer page = t.call([&](Effects& out) { return t.engine.references(command, out); });
    EXPECT_EQ(page.count, 25u);
    EXPECT_EQ(page.nodes.size(), seen.size() < 20 ? 10u : 5u);
    for (std::string_view node : page.nodes) seen.emplace_back(node);
    more = page.more;
    command.after = NodeId(page.nodes.back());
  }
  EXPECT_THAT(seen, SizeIs(25));
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  command.after = NodeId("n12x");  // a node that is not in the set, or no longer
  const ReferencesAnswer rest = t.call([&](Effects& out) { return t.engine.references(command, out); });
  EXPECT_EQ(rest.nodes.front(), "n13");
}

TEST(References, S19_ReleaseNodeTakesItOutEverywhereAndSaysHowOften) {
  TestEngine t;
  for (int i = 0; i < 100; ++i) {
    const std::string resource = fmt::format("r{}", i);
    t.add_reference(resource, "n1");
    if (i % 2 == 0) t.add_reference(resource, "n2");
  }
  const ReferencesAnswer answer = t.release_node("n2");
  EXPECT_TRUE(answer.changed);
  EXPECT_EQ(answer.count, 50u);
  EXPECT_THAT(t.references("r0"), ElementsAre("n1"));
  EXPECT_EQ(t.release_node("n2").count, 0u);
  EXPECT_EQ(t.release_node("n1").count, 100u);
  EXPECT_EQ(t.engine.resource_count(), 0u);
}

TEST(References, S19_ADereferencingDeleteOfTheLastUserIsGranted) {
  TestEngine t;
  t.add_reference("r", "n1");
  EXPECT_EQ(t.lock("delete", "r", "n1").refusal, Refusal::referenced) << "not without saying so";
  EXPECT_EQ(t.lock(Ask("delete", "r", "n1").dereference()).state, LockState::acquired);
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(References, S19_ADereferencingDeleteWithOthersLeftSkipsWithTheirNames) {
  TestEngine t;
  for (const char* node : {"n1", "n2", "n3"}) t.add_reference("r", node);
  const LockAnswer answer = t.lock(Ask("delete", "r", "n2").dereference());
  EXPECT_EQ(answer.state, LockState::skipped);
  EXPECT_EQ(answer.refusal, Refusal::none);
  EXPECT_THAT(answer.references.nodes, ElementsAre("n1", "n3"));
  EXPECT_THAT(t.references("r"), ElementsAre("n1", "n3"));
}

TEST(References, S19_TheReferenceIsDroppedWhenTheDeleteIsQueued) {
  TestEngine t;
  t.add_reference("r", "n2");
  t.lock(Ask("update", "r", "n1").whole_resource());
  EXPECT_EQ(t.lock(Ask("delete", "r", "n2").dereference()).state, LockState::queued);
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(References, S19_TheReferenceIsDroppedWhenTheDeleteIsRefusedAsBusy) {
  EngineSettings settings;
  settings.allow_multi_node_download = false;
  TestEngine t(settings);
  t.add_reference("r", "n2");
  t.lock(Ask("update", "r", "n1").whole_resource());
  EXPECT_EQ(t.lock(Ask("delete", "r", "n2").dereference()).refusal, Refusal::busy);
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(References, S19_TheReferenceIsDroppedWhenTheDeleteWasDoneAlready) {
  TestEngine t;
  t.lock("delete", "r", "n1");
  t.succeed("delete", "r", "n1");
  t.add_reference("r", "n2");
  EXPECT_EQ(t.lock(Ask("delete", "r", "n2").dereference()).state, LockState::skipped);
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(References, S19_TheReferenceStaysDroppedWhenTheDeleteFailsLater) {
  TestEngine t;
  t.add_reference("r", "n1");
  t.lock(Ask("delete", "r", "n1").dereference());
  t.fail("delete", "r", "n1", "x");
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(References, S19_DereferenceOnlyMattersForOperationsThatClearReferences) {
  TestEngine t;
  t.add_reference("r", "n1");
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").dereference()).state, LockState::skipped);
  EXPECT_EQ(t.lock(Ask("update", "r", "n1").dereference()).state, LockState::acquired);
  EXPECT_EQ(t.lock(Ask("job", "r", "n1").dereference()).state, LockState::acquired);
  EXPECT_THAT(t.references("r"), ElementsAre("n1"));
}

TEST(References, S19_NoneIsAddedWhileADeleteHoldsTheResource) {
  TestEngine t;
  t.lock("delete", "r", "n1");
  const ReferencesAnswer refused = t.add_reference("r", "n2");
  EXPECT_EQ(refused.refusal, Refusal::busy);
  EXPECT_FALSE(refused.changed);
  EXPECT_THAT(t.references("r"), IsEmpty());
  EXPECT_EQ(t.add_reference("other", "n2").refusal, Refusal::none);
  t.fail("delete", "r", "n1", "x");
  EXPECT_TRUE(t.add_reference("r", "n2").changed);
}

TEST(References, S19_OneIsAddedWhileADeleteOnlyWaitsOrAnotherOperationHolds) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock("delete", "r", "n2");
  EXPECT_TRUE(t.add_reference("r", "n3").changed);
}

TEST(Memory, S20_AResourceWithNothingToKeepTakesNone) {
  TestEngine t;
  t.status("pull", "r", "n1");
  t.cancel("pull", "r", "n1");
  t.release_reference("r", "n1");
  t.subscribe("pull", "r");
  EXPECT_EQ(t.engine.resource_count(), 0u);
  t.add_reference("r", "n1");
  EXPECT_EQ(t.engine.resource_count(), 1u);
  t.lock("delete", "r", "n2");  // refused
  t.release_reference("r", "n1");
  EXPECT_EQ(t.engine.resource_count(), 0u);
  t.subscribe("pull", "r", "n1", 5);
  EXPECT_EQ(t.engine.resource_count(), 1u) << "an open bond is state too";
  t.close_bond("pull", "r", "n1", 5);
  EXPECT_EQ(t.engine.resource_count(), 0u);
}

TEST(Memory, S20_EachThingThatIsKeptIsForgottenWhenItsTimeIsOver) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.lock("job", "s", "n1");
  t.fail("job", "s", "n1", "x");
  EXPECT_EQ(t.engine.resource_count(), 2u);
  t.pass(60'000);
  EXPECT_EQ(t.engine.resource_count(), 1u) << "the released token of s";
  t.pass(240'000);
  EXPECT_EQ(t.engine.resource_count(), 0u) << "the completion of r";
  EXPECT_EQ(t.engine.next_deadline(), kNever);
}

TEST(Memory, S20_WithNothingRetainedNothingIsLeftAtOnce) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  settings.retain_completed = settings.retain_released = settings.retain_permanent_failure = Duration(0);
  settings.claim_timeout = Duration(0);
  TestEngine t(settings);
  for (const char* operation : {"pull", "update", "delete", "job"}) {
    t.lock(operation, "r", "n1");
    t.succeed(operation, "r", "n1");
    t.lock(operation, "r", "n1");
    t.fail_permanently(operation, "r", "n1", "x");
    EXPECT_EQ(t.engine.resource_count(), 0u) << operation;
  }
}

}  // namespace
}  // namespace turnstile
