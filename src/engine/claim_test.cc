// Section 3 of docs/semantics.md, rule S14: a grant to a waiter must be claimed, and is decided again when it
// comes.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// n1 has failed, n2 has just been granted and does not know it yet, n3 waits.
struct Granted : ::testing::Test {
  Granted() {
    t.lock("pull", "r", "n1");
    t.lock("pull", "r", "n2");
    t.lock("pull", "r", "n3");
    t.fail("pull", "r", "n1", "x");
    t.take_events();
  }
  TestEngine t;
};

TEST_F(Granted, S14_AnUnclaimedGrantExpiresAndPassesOn) {
  t.pass(9'999);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
  t.pass(1);
  EXPECT_EQ(t.sink.log.events.end()[-2].reason, "unclaimed");
  EXPECT_THAT(t.take_events(), ElementsAre("expired pull n2: unclaimed", "granted pull n3"));
  const LockAnswer next = t.lock("pull", "r", "n3");
  EXPECT_EQ(next.attempt, 3u);
  EXPECT_EQ(next.previous_error, "unclaimed");
}

TEST_F(Granted, S14_AskingAgainClaims) {
  t.pass(9'999);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::acquired);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
}

TEST_F(Granted, S14_AStatusPollThatNamesTheRequesterClaims) {
  t.pass(9'999);
  const StatusAnswer answer = t.status("pull", "r", "n2");
  EXPECT_TRUE(answer.acquired);
  EXPECT_NE(answer.token, Token::none);
  EXPECT_EQ(answer.attempt, 2u);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
}

TEST_F(Granted, S14_NobodyElsesLookClaims) {
  EXPECT_FALSE(t.status("pull", "r").acquired);
  EXPECT_FALSE(t.status("pull", "r", "n3").acquired);
  EXPECT_FALSE(t.status("pull", "r", "n2", "other").acquired);
  t.subscribe("pull", "r", "n3", 8);
  t.subscribe("pull", "r");
  t.pass(10'000);
  EXPECT_EQ(t.holder("pull", "r"), "n3");
}

TEST_F(Granted, S14_ASubscriptionThatNamesTheRequesterClaims) {
  t.subscribe("pull", "r", "n2", 8);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
}

TEST_F(Granted, S14_ARenewalClaims) {
  const Token token = t.status("pull", "r").holder->token;
  EXPECT_EQ(t.renew({lane_of("pull", "r"), requester("n2"), token, {}, {}}).refusal, Refusal::none);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
}

TEST_F(Granted, S14_AnUnclaimedGrantCanBeUnlocked) {
  EXPECT_EQ(t.succeed("pull", "r", "n2").refusal, Refusal::none);
  EXPECT_THAT(t.take_events(), ElementsAre("completed pull n2"));
}

struct Undelivered : ::testing::Test {
  Undelivered() {
    t.lock("update", "r", "n1");
    t.lock(Ask("update", "r", "n2").poll(2));
    t.lock("update", "r", "n3");
    t.succeed("update", "r", "n1");
    token = t.wake(2).token;
  }
  TestEngine t;
  Token token{};
};

TEST_F(Undelivered, S36_AGrantThatNeverReachedItsLongPollIsUnclaimedAgain) {
  t.pass(5'000);
  t.undelivered("update", "r", "n2", token);
  t.pass(9'999);
  EXPECT_EQ(t.holder("update", "r"), "n2") << "claim_timeout from now on";
  t.pass(1);
  EXPECT_EQ(t.holder("update", "r"), "n3");
}

TEST_F(Undelivered, S36_ItCanStillBeClaimedByAskingAgain) {
  t.undelivered("update", "r", "n2", token);
  EXPECT_EQ(t.lock("update", "r", "n2").token, token);
  t.pass(60'000);
  EXPECT_EQ(t.holder("update", "r"), "n2");
}

TEST_F(Undelivered, S36_WhoeverHasShownThatItKnowsKeepsItsHold) {
  t.lock("update", "r", "n2");
  t.undelivered("update", "r", "n2", token);
  t.pass(60'000);
  EXPECT_EQ(t.holder("update", "r"), "n2");
}

TEST_F(Undelivered, S36_ABondOrAnotherTokenKeepsIt) {
  t.undelivered("update", "r", "n2", Token(uint64_t(token) + 1));
  t.undelivered("update", "r", "n3", token);
  t.subscribe("update", "r", "n2", 9);
  t.undelivered("update", "r", "n2", token);
  t.pass(60'000);
  EXPECT_EQ(t.holder("update", "r"), "n2");
}

TEST(Claim, S36_OfSeveralLongPollsOneThatWasAnsweredIsEnoughAndNoneIsNot) {
  for (const int lost : {1, 2}) {
    TestEngine t;
    t.lock("job", "r", "holder");
    t.lock(Ask("job", "r", "a").poll(1));
    t.lock(Ask("job", "r", "a").poll(2));
    t.succeed("job", "r", "holder");
    t.break_poll("job", "r", "a", 1);
    if (lost == 2) t.undelivered("job", "r", "a", t.status("job", "r").holder->token);
    t.pass(10'000);
    EXPECT_EQ(t.holder("job", "r"), lost == 1 ? "a" : "") << lost << " of 2 were lost";
  }
}

TEST_F(Undelivered, S31_S36_SurvivesARestart) {
  t.undelivered("update", "r", "n2", token);
  const auto again = TestEngine::load(t.sink.log.records, t.now);
  again->pass(10'000);
  EXPECT_EQ(again->holder("update", "r"), "n3");
}

TEST(Claim, S35_WaitersThatHaveGoneHoldUpTheNextOnlyForAFraction) {
  TestEngine t;
  t.lock("update", "r", "holder");
  for (const char* node : {"gone1", "gone2", "gone3", "gone4", "last"}) t.lock("update", "r", node);
  for (int i = 0; i < 6; ++i) {
    t.pass(5'000);
    t.status("update", "r", "last");
  }
  t.succeed("update", "r", "holder");
  EXPECT_EQ(t.holder("update", "r"), "gone1");
  t.pass(999);
  EXPECT_EQ(t.holder("update", "r"), "gone1") << "a tenth of 10 s";
  for (int i = 0; i < 4; ++i) t.pass(1'000);
  EXPECT_EQ(t.holder("update", "r"), "last");
  t.pass(9'000);
  EXPECT_EQ(t.holder("update", "r"), "last") << "it was heard of, and has all of claim_timeout";
}

TEST(Claim, S35_WhoeverIsHeardOfHasItsFullTime) {
  TestEngine t;
  t.lock("update", "r", "holder");
  t.lock("update", "r", "asks");
  t.pass(60'000);
  t.lock("update", "r", "asks");
  t.succeed("update", "r", "holder");
  t.pass(9'999);
  EXPECT_EQ(t.holder("update", "r"), "asks");
  t.lock("update", "r", "asks");
  t.lock(Ask("update", "r", "polls").poll(7));
  t.pass(60'000);
  t.end_poll("update", "r", "polls", 7);
  t.succeed("update", "r", "asks");
  t.pass(9'999);
  EXPECT_EQ(t.holder("update", "r"), "polls") << "the end of a long poll is a sign of life";
}

TEST(Claim, S35_AFractionIsAtLeastHalfASecondAndNeverMoreThanAll) {
  EngineSettings settings;
  settings.claim_timeout = std::chrono::seconds(2);
  EXPECT_EQ(settings.short_claim(), std::chrono::milliseconds(500));
  settings.claim_timeout = std::chrono::milliseconds(100);
  EXPECT_EQ(settings.short_claim(), std::chrono::milliseconds(100));
  settings.claim_timeout = std::chrono::seconds(60);
  EXPECT_EQ(settings.short_claim(), std::chrono::seconds(6));
}

TEST(Claim, S31_S35_AfterARestartEverybodyCountsAsJustHeardOf) {
  TestEngine t;
  t.lock("update", "r", "holder");
  t.lock("update", "r", "gone");
  t.pass(60'000);
  const auto again = TestEngine::load(t.sink.log.records, t.now);
  again->succeed("update", "r", "holder");
  again->pass(9'999);
  EXPECT_EQ(again->holder("update", "r"), "gone");
}

TEST(Claim, S14_AnOpenLongPollClaimsAtOnce) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.fail("pull", "r", "n1", "x");
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
}

TEST(Claim, S14_ABondClaimsAtOnce) {
  TestEngine t;
  t.subscribe("pull", "r", "n3", 3);
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").monitor(2));
  t.lock("pull", "r", "n3");
  t.fail("pull", "r", "n1", "x");
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n2") << "the connection of its monitor:true request";
  t.fail("pull", "r", "n2", "x");
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n3") << "its subscription";
}

TEST(Claim, S14_ATimedOutLongPollDoesNotClaim) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.end_poll("pull", "r", "n2", 2);
  t.fail("pull", "r", "n1", "x");
  t.pass(10'000);
  EXPECT_EQ(t.last_event().reason, "unclaimed");
}

TEST(Claim, S14_TheLeaseBeginsWithTheClaim) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").lease(2000));
  t.fail("pull", "r", "n1", "x");
  t.pass(9'000);
  t.status("pull", "r", "n2");
  t.pass(1'999);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
  t.pass(1);
  EXPECT_EQ(t.last_event().reason, "lease");
}

TEST(Claim, S14_MaxHoldBeginsWithTheClaim) {
  EngineSettings settings;
  settings.max_hold = ms(20'000);
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x");
  t.pass(9'000);
  t.lock("pull", "r", "n2");
  t.pass(19'999);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
  t.pass(1);
  EXPECT_EQ(t.last_event().reason, "max_hold");
}

TEST(Regrant, S14_AWaiterWhoseWorkWasDoneMeanwhileSkips) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.lock(Ask("update", "r", "n2").whole_resource());
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.lock("pull", "r", "n4");
  t.fail("update", "r", "n2", "x");
  EXPECT_EQ(t.wake(3).state, LockState::skipped);
  EXPECT_EQ(t.lock("pull", "r", "n4").state, LockState::skipped);
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
}

TEST(Regrant, S14_AWaiterOfALaneThatHasFailedForGoodIsToldItsError) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  t.lock(Ask("update", "r", "n2").whole_resource());
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.fail("update", "r", "n2", "x");
  EXPECT_EQ(t.wake(3).state, LockState::failed);
  EXPECT_EQ(t.wake(3).error, "404");
  EXPECT_EQ(t.status("pull", "r", "n3").error, "404");
}

TEST(Regrant, S14_APullThatWasReferencedMeanwhileSkips) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.add_reference("r", "n3");
  t.succeed("update", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_THAT(t.references("r"), ElementsAre("n2", "n3"));
}

TEST(Regrant, S14_AWaiterThatBecameForbiddenIsRefusedWithTheReasonAndAnEvent) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").poll(2));
  t.lock(Ask("job", "r", "n4"));
  t.add_reference("r", "n3");
  t.take_events();
  t.succeed("update", "r", "n1");
  EXPECT_THAT(t.take_events(), ElementsAre("completed update n1", "refused delete n2", "granted job n4"));
  EXPECT_EQ(t.wake(2).state, LockState::refused);
  EXPECT_EQ(t.wake(2).refusal, Refusal::referenced);
  EXPECT_THAT(t.wake(2).references, ElementsAre("n3"));
}

TEST(Regrant, S14_ADereferencingDeleteDropsItsReferenceAgainWhenItsTurnComes) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").dereference().poll(2));
  t.add_reference("r", "n2");
  t.succeed("update", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::acquired);
  EXPECT_THAT(t.references("r"), IsEmpty());
}

TEST(Regrant, S14_ADereferencingDeleteSkipsWithTheNamesOfTheOthersWhenItsTurnComes) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").dereference().poll(2));
  t.add_reference("r", "n2");
  t.add_reference("r", "n3");
  t.succeed("update", "r", "n1");
  EXPECT_EQ(t.wake(2).state, LockState::skipped);
  EXPECT_THAT(t.wake(2).references, ElementsAre("n3"));
  EXPECT_THAT(t.references("r"), ElementsAre("n3"));
}

TEST(Claim, S35_WhoseConnectionWasThereAMomentAgoHasItsFullTime) {
  for (const bool polls : {true, false}) {
    TestEngine t;
    t.lock("job", "r", "holder");
    polls ? t.lock(Ask("job", "r", "a").poll(1)) : t.lock("job", "r", "a");
    if (!polls) t.subscribe("job", "r", "a", 5);
    t.pass(60'000);
    polls ? t.break_poll("job", "r", "a", 1) : t.close_bond("job", "r", "a", 5);
    t.succeed("job", "r", "holder");
    t.pass(1'500);
    EXPECT_EQ(t.holder("job", "r"), "a") << polls;
  }
}

TEST(Claim, S36_APollThatBreaksWhileItsGrantIsOnTheWayLeavesItUnclaimed) {
  TestEngine t;
  t.lock("job", "r", "holder");
  t.lock(Ask("job", "r", "a").poll(1));
  t.succeed("job", "r", "holder");
  t.break_poll("job", "r", "a", 1);
  t.pass(9'999);
  EXPECT_EQ(t.holder("job", "r"), "a");
  t.pass(1);
  EXPECT_EQ(t.holder("job", "r"), "");
}

}  // namespace
}  // namespace turnstile
