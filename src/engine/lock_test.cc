// Section 2 of docs/semantics.md, rules S3 to S7: what a new request for a lane is told. Asking again (S2)
// has a file of its own, ask_again_test.cc.
#include <ctime>

#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Lock, S3_BusyLaneQueuesAtTheTailAndSaysWhoHolds) {
  TestEngine t;
  const Token token = t.lock(Ask("pull", "r", "n1").request("a").info("layer 3").lease(5000)).token;
  const Time since = t.now;
  t.pass(10);
  t.lock("pull", "r", "n2");
  const LockAnswer third = t.lock("pull", "r", "n3");
  EXPECT_EQ(third.state, LockState::queued);
  EXPECT_EQ(third.token, Token::none);
  EXPECT_EQ(third.position, 2u);
  ASSERT_TRUE(third.holder);
  EXPECT_EQ(name_of(third.holder->who), "n1/a");
  EXPECT_EQ(third.holder->operation.text, "pull");
  EXPECT_EQ(third.holder->token, token);
  EXPECT_EQ(third.holder->since, since);
  EXPECT_EQ(third.holder->lease, ms(5000));
  EXPECT_EQ(third.holder->info, "layer 3");
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2", "n3"));
}

TEST(Lock, S3_QueueIsServedFirstInFirstOut) {
  TestEngine t;
  for (const char* node : {"n1", "n2", "n3", "n4"}) t.lock("job", "r", node);
  t.take_events();
  for (const char* node : {"n1", "n2", "n3", "n4"})
    EXPECT_EQ(t.succeed("job", "r", node).refusal, Refusal::none);
  EXPECT_THAT(t.take_events(),
              ElementsAre("completed job n1", "granted job n2", "completed job n2", "granted job n3",
                          "completed job n3", "granted job n4", "completed job n4"));
}

TEST(Lock, S3_QueueingIsNoEvent) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.take_events();
  t.lock("pull", "r", "n2");
  EXPECT_THAT(t.take_events(), IsEmpty());
}

TEST(Lock, S3_PositionCountsWithinTheLane) {
  TestEngine t;
  t.lock(Ask("delete", "r", "n1").whole_resource());
  EXPECT_EQ(t.lock("pull", "r", "n2").position, 1u);
  EXPECT_EQ(t.lock("update", "r", "n3").position, 1u);
  EXPECT_EQ(t.lock("pull", "r", "n4").position, 2u);
}

TEST(Lock, S3_TheHoldOfAnotherLaneInTheWayIsTold) {
  TestEngine t;
  t.lock(Ask("delete", "r", "n1").whole_resource());
  const LockAnswer answer = t.lock("pull", "r", "n2");
  EXPECT_EQ(answer.state, LockState::queued);
  ASSERT_TRUE(answer.holder);
  EXPECT_EQ(answer.holder->operation.text, "delete");
  EXPECT_EQ(answer.holder->who.node.text, "n1");
}

TEST(Lock, S3_AnOlderConflictingWaiterQueuesANewcomerThatNoHoldStandsInTheWayOf) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("delete", "r", "n2").whole_resource());
  const LockAnswer answer = t.lock("update", "r", "n3");
  EXPECT_EQ(answer.state, LockState::queued);
  EXPECT_EQ(answer.position, 1u);
  EXPECT_FALSE(answer.holder) << "a waiter is in the way, not a hold";
}

TEST(Lock, S3_AWaiterOfAnotherLaneDoesNotQueueANewcomerItDoesNotConflictWith) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  EXPECT_EQ(t.lock("update", "r", "n3").state, LockState::acquired);
}

TEST(Lock, S3_WithoutMultiNodeDownloadABusyLaneRefusesAndQueuesNobody) {
  EngineSettings settings;
  settings.allow_multi_node_download = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  const LockAnswer answer = t.lock(Ask("pull", "r", "n2").poll(7));
  EXPECT_EQ(answer.state, LockState::refused);
  EXPECT_EQ(answer.refusal, Refusal::busy);
  ASSERT_TRUE(answer.holder);
  EXPECT_EQ(answer.holder->who.node.text, "n1");
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
  EXPECT_EQ(t.lock("pull", "r", "n1").state, LockState::acquired) << "asking again comes before";
  t.succeed("pull", "r", "n1");
  EXPECT_THAT(t.wakes, IsEmpty());
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped) << "done already is no longer busy";
}

TEST(Lock, S3_AFullQueueRefuses) {
  EngineSettings settings;
  settings.max_queue = 2;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.lock("pull", "r", "n3");
  const LockAnswer answer = t.lock("pull", "r", "n4");
  EXPECT_EQ(answer.state, LockState::refused);
  EXPECT_EQ(answer.refusal, Refusal::queue_full);
  EXPECT_EQ(t.lock("pull", "r", "n3").position, 2u) << "those inside are not touched";
  t.cancel("pull", "r", "n2");
  EXPECT_EQ(t.lock("pull", "r", "n4").position, 2u);
}

TEST(Lock, S3_BusyIsDecidedBeforeDoneAlready) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.lock(Ask("update", "r", "n2").whole_resource());
  EXPECT_EQ(t.lock("pull", "r", "n3").state, LockState::queued);
}

TEST(Lock, S4_ALateComerSkipsWhileTheSuccessIsKept) {
  EngineSettings settings;
  settings.server_keeps_references = false;  // else S5 would let it skip too
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.take_events();
  t.pass(299'999);
  const LockAnswer answer = t.lock("pull", "r", "n2");
  EXPECT_EQ(answer.state, LockState::skipped);
  EXPECT_EQ(answer.refusal, Refusal::none);
  EXPECT_EQ(answer.token, Token::none);
  EXPECT_THAT(t.take_events(), IsEmpty());
  t.pass(1);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
}

TEST(Lock, S4_WhatIsRetainedUntilNowIsGoneEvenBeforeASweep) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.now += ms(300'000);
  EXPECT_EQ(t.status("pull", "r").state, LaneState::idle);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
}

TEST(Lock, S4_AKeptPermanentFailureIsToldWithItsError) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  t.pass(9'999);
  const LockAnswer answer = t.lock("pull", "r", "n2");
  EXPECT_EQ(answer.state, LockState::failed);
  EXPECT_EQ(answer.refusal, Refusal::failed);
  EXPECT_EQ(answer.error, "404");
  t.pass(1);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
}

TEST(Lock, S4_APermanentFailureIsToldForHandoffOperationsToo) {
  TestEngine t;
  t.lock("job", "r", "n1");
  t.fail_permanently("job", "r", "n1", "bad digest");
  EXPECT_EQ(t.lock("job", "r", "n2").error, "bad digest");
}

TEST(Lock, S4_AnOrdinaryFailureIsNotKept) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail("pull", "r", "n1", "reset");
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
}

TEST(Lock, S5_PullOfAReferencedResourceSkips) {
  TestEngine t;
  t.add_reference("r", "n1");
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::skipped);
  EXPECT_EQ(t.lock("pull", "r", "n1").state, LockState::skipped);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(Lock, S5_DeleteOfAReferencedResourceIsRefusedNamingTheNodes) {
  TestEngine t;
  t.add_reference("r", "n2");
  t.add_reference("r", "n1");
  const LockAnswer answer = t.lock("delete", "r", "n1");
  EXPECT_EQ(answer.state, LockState::refused);
  EXPECT_EQ(answer.refusal, Refusal::referenced);
  EXPECT_THAT(answer.references.nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(t.holder("delete", "r"), "");
}

TEST(Lock, S5_UpdateIsRefusedByReferencesOnlyWhenItRequiresNone) {
  TestEngine lenient;
  lenient.add_reference("r", "n1");
  EXPECT_EQ(lenient.lock("update", "r", "n2").state, LockState::acquired);

  EngineSettings settings;
  settings.operations = default_operations(true);
  TestEngine strict(settings);
  strict.add_reference("r", "n1");
  const LockAnswer answer = strict.lock("update", "r", "n2");
  EXPECT_EQ(answer.state, LockState::refused);
  EXPECT_EQ(answer.refusal, Refusal::referenced);
  EXPECT_THAT(answer.references.nodes, ElementsAre("n1"));
  strict.release_reference("r", "n1");
  EXPECT_EQ(strict.lock("update", "r", "n2").state, LockState::acquired);
}

TEST(Lock, S5_ReferencesAreCheckedAfterTheLockState) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.add_reference("r", "n3");
  EXPECT_EQ(t.lock("delete", "r", "n2").state, LockState::queued);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::queued);
}

TEST(Lock, S6_AFreeLaneIsGrantedWithANewTokenAndOneEvent) {
  TestEngine t({}, 41);
  const LockAnswer answer = t.lock("pull", "r", "n1");
  EXPECT_EQ(answer.state, LockState::acquired);
  EXPECT_EQ(answer.token, Token(42));
  EXPECT_EQ(answer.attempt, 1u);
  EXPECT_EQ(answer.previous_error, "");
  EXPECT_EQ(t.last_event().token, Token(42));
  EXPECT_EQ(t.last_event().attempt, 1u);
  EXPECT_EQ(t.last_event().at, t.now);
  EXPECT_THAT(t.take_events(), ElementsAre("granted pull n1"));
}

TEST(Lock, S6_TokensGrowWithEveryGrantOnTheServer) {
  TestEngine t;
  const Token a = t.lock("pull", "r", "n1").token;
  const Token b = t.lock("pull", "s", "n1").token;
  t.fail("pull", "r", "n1", "x");
  const Token c = t.lock("pull", "r", "n1").token;
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
}

TEST(Lock, S7_OperationsOfOneResourceRunSideBySideByDefaultEachWithItsOwnQueue) {
  TestEngine t;
  for (const char* operation : {"pull", "update", "delete"}) {
    EXPECT_EQ(t.lock(operation, "r", "n1").state, LockState::acquired) << operation;
    EXPECT_EQ(t.lock(operation, "r", "n2").position, 1u) << operation;
  }
}

TEST(Lock, S7_ScopeResourceOfTheHolderExcludesEveryOtherOperation) {
  TestEngine t;
  t.lock(Ask("delete", "r", "n1").whole_resource());
  EXPECT_EQ(t.lock(Ask("pull", "r", "n2").scope(Scope::operation)).state, LockState::queued);
  EXPECT_EQ(t.lock("pull", "other", "n2").state, LockState::acquired) << "only of the same resource";
}

TEST(Lock, S7_ScopeResourceOfTheNewcomerWaitsForEveryOtherOperation) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("update", "r", "n2");
  EXPECT_EQ(t.lock(Ask("delete", "r", "n3").whole_resource()).state, LockState::queued);
  t.fail("pull", "r", "n1", "x");
  EXPECT_EQ(t.holder("delete", "r"), "") << "the update still holds";
  t.fail("update", "r", "n2", "x");
  EXPECT_EQ(t.holder("delete", "r"), "n3");
}

TEST(Lock, S7_TheServersDefaultScopeIsASettingThatARequestCanOverride) {
  EngineSettings settings;
  settings.default_scope = Scope::resource;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  EXPECT_EQ(t.lock(Ask("update", "r", "n2").scope(Scope::operation)).state, LockState::queued);
  t.lock(Ask("pull", "s", "n1").scope(Scope::operation));
  EXPECT_EQ(t.lock(Ask("update", "s", "n2").scope(Scope::operation)).state, LockState::acquired);
  EXPECT_EQ(t.lock("delete", "s", "n3").state, LockState::queued);
}

TEST(Lock, S7_TheOldestCompatibleWaiterGoesNextWhateverItsOperation) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").whole_resource());
  t.lock(Ask("pull", "r", "n3").whole_resource());
  t.lock(Ask("update", "r", "n4").whole_resource());
  t.take_events();
  t.fail("pull", "r", "n1", "x");
  EXPECT_THAT(t.take_events(), ElementsAre("failed pull n1: x", "granted delete n2"));
  t.fail("delete", "r", "n2", "x");
  EXPECT_THAT(t.take_events(), ElementsAre("failed delete n2: x", "granted pull n3"));
  t.fail("pull", "r", "n3", "x");
  EXPECT_THAT(t.take_events(), ElementsAre("failed pull n3: x", "granted update n4"));
}

// To look for each lane at all others kept a thread from everybody for half a second, with nine thousand.
TEST(Lock, S7_WhoGoesNextOnAResourceIsFoundByALookAtEachOfItsLanes) {
  TestEngine t;
  std::vector<std::string> operations;
  for (int i = 0; i < 1500; ++i) operations.push_back(fmt::format("t{}", i));
  const std::clock_t asked = std::clock();
  for (const char* node : {"n1", "n2"})
    for (const std::string& operation : operations)
      t.engine.lock(Ask(operation, "r", node).command, t.now, t.scratch());
  const std::clock_t began = std::clock();
  for (const std::string& operation : operations) {
    const UnlockCommand failed{lane_of(operation, "r"), requester("n1"), Token::none, false, "x", false};
    ASSERT_EQ(t.engine.unlock(failed, t.now, t.scratch()).next, NodeId("n2"));
  }
  EXPECT_LT(std::clock() - began, (began - asked) * 10) << "each that asked looked at all lanes, too";
}

// To look at all lanes again for each of those that go kept a thread from everybody for seconds.
TEST(Lock, S7_AllLanesThatWaitForOneHoldGoInOneLookAtEach) {
  TestEngine t;
  ASSERT_EQ(t.engine.lock(Ask("t", "r", "n1").whole_resource().command, t.now, t.scratch()).state,
            LockState::acquired);
  constexpr size_t kLanes = 5'000;
  const std::clock_t asked = std::clock();
  for (size_t i = 0; i < kLanes; ++i)
    t.engine.lock(Ask(fmt::format("t{}", i), "r", "n2").command, t.now, t.scratch());
  const std::clock_t began = std::clock();
  const UnlockCommand unlock{lane_of("t", "r"), requester("n1"), Token::none, true, {}, false};
  ASSERT_EQ(t.engine.unlock(unlock, t.now, t.scratch()).refusal, Refusal::none);
  EXPECT_LT(std::clock() - began, (began - asked) / 5) << "each that asked looked at all lanes, too";
  EXPECT_EQ(t.holder("t0", "r"), "n2");
  EXPECT_EQ(t.holder(fmt::format("t{}", kLanes - 1), "r"), "n2");
}

TEST(Lock, S7_WhoDoesNotConflictWithOlderWaitersOvertakesThem) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("update", "r", "n2");
  t.lock("pull", "r", "n3");
  t.lock("update", "r", "n4");
  t.fail("update", "r", "n2", "x");
  EXPECT_EQ(t.holder("update", "r"), "n4") << "the older waiter n3 is of another lane";
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n3"));
}

}  // namespace
}  // namespace turnstile
