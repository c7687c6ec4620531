// Section 3 of docs/semantics.md, rules S8, S9, S15 and S16: who may unlock, and what the answer tells. What
// follows for the waiters is in end_test.cc.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Unlock, S8_OfAFreeLaneIsNotHeld) {
  TestEngine t;
  EXPECT_EQ(t.succeed("pull", "r", "n1").refusal, Refusal::not_held);
  EXPECT_EQ(t.succeed("pull", "r", "n1", Token(5)).refusal, Refusal::not_held);
  EXPECT_EQ(t.engine.resource_count(), 0u);
  t.lock("update", "r", "n1");
  EXPECT_EQ(t.succeed("pull", "r", "n1").refusal, Refusal::not_held)
      << "another lane's hold is no hold of this one";
}

TEST(Unlock, S8_IsRefusedInTheOrderNodeThenRequestThenToken) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").request("a"));
  const LaneName lane = lane_of("pull", "r");
  const Token wrong{999};
  EXPECT_EQ(t.succeed(lane, requester("n2"), Token::none).refusal, Refusal::not_holder);
  EXPECT_EQ(t.succeed(lane, requester("n2", "a"), wrong).refusal, Refusal::not_holder)
      << "the node comes first";
  EXPECT_EQ(t.succeed(lane, requester("n1", "b"), Token::none).refusal, Refusal::not_holder);
  EXPECT_EQ(t.succeed(lane, requester("n1"), Token::none).refusal, Refusal::not_holder);
  EXPECT_EQ(t.succeed(lane, requester("n1", "a"), wrong).refusal, Refusal::stale_token);
  EXPECT_EQ(t.succeed(lane, requester("n1", "b"), wrong).refusal, Refusal::stale_token);
}

TEST(Unlock, S8_ARefusalChangesNothing) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").request("a"));
  t.lock("pull", "r", "n2");
  const auto before = t.facts();
  t.take_events();
  t.succeed("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n3", "x");
  t.succeed(lane_of("pull", "r"), requester("n1", "a"), Token(999));
  EXPECT_EQ(t.facts(), before);
  EXPECT_THAT(t.take_events(), IsEmpty());
}

TEST(Unlock, S8_ATokenSpeaksForItsNodeWhateverTheRequestId) {
  TestEngine t;
  const Token token = t.lock(Ask("pull", "r", "n1").request("a")).token;
  EXPECT_EQ(t.succeed(lane_of("pull", "r"), requester("n1", "b"), token).refusal, Refusal::none);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(Unlock, S8_RenewChecksTheSameWay) {
  TestEngine t;
  const LaneName lane = lane_of("pull", "r");
  EXPECT_EQ(t.renew({lane, requester("n1"), Token(1), {}, {}}).refusal, Refusal::not_held);
  const Token token = t.lock(Ask("pull", "r", "n1").request("a").lease(1000)).token;
  const auto before = t.facts();
  EXPECT_EQ(t.renew({lane, requester("n2", "a"), token, ms(9000), {}}).refusal, Refusal::not_holder);
  EXPECT_EQ(t.renew({lane, requester("n1", "b"), Token::none, ms(9000), {}}).refusal, Refusal::not_holder);
  EXPECT_EQ(t.renew({lane, requester("n1", "a"), Token(999), ms(9000), {}}).refusal, Refusal::stale_token);
  EXPECT_EQ(t.facts(), before);
  EXPECT_EQ(t.renew({lane, requester("n1", "a"), token, ms(9000), {}}).refusal, Refusal::none);
}

TEST(Unlock, S9_NoSuccessWithoutAnErrorIsAFailure) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.take_events();
  t.fail("pull", "r", "n1", "");
  EXPECT_THAT(t.take_events(), ElementsAre("failed pull n1", "granted pull n2"));
  EXPECT_EQ(t.lock("pull", "r", "n2").attempt, 2u);
}

TEST(Unlock, S15_ARepetitionIsRecognizedForAMinuteAndChangesNothing) {
  TestEngine t;
  const Token token = t.lock("pull", "r", "n1").token;
  const UnlockAnswer first = t.fail("pull", "r", "n1", "x", token);
  EXPECT_EQ(first.refusal, Refusal::none);
  EXPECT_FALSE(first.already);
  t.pass(59'999);
  const auto before = t.facts();
  t.take_events();
  const UnlockAnswer again = t.succeed("pull", "r", "n1", token);
  EXPECT_EQ(again.refusal, Refusal::none);
  EXPECT_TRUE(again.already);
  EXPECT_EQ(t.facts(), before);
  EXPECT_THAT(t.take_events(), IsEmpty());
  t.now += ms(1);
  EXPECT_EQ(t.succeed("pull", "r", "n1", token).refusal, Refusal::not_held);
}

TEST(Unlock, S15_ARepetitionIsRecognizedWhoeverHoldsTheLaneByThen) {
  TestEngine t;
  const Token token = t.lock("pull", "r", "n1").token;
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x", token);
  EXPECT_TRUE(t.fail("pull", "r", "n1", "x", token).already);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
  t.fail("pull", "r", "n2", "x");
  t.lock("pull", "r", "n1");
  EXPECT_FALSE(t.fail("pull", "r", "n1", "x", token).already) << "only the last released hold is remembered";
  EXPECT_EQ(t.holder("pull", "r"), "n1");
}

TEST(Unlock, S15_OnlyTheNodeThatHeldItIsToldSo) {
  TestEngine t;
  const Token token = t.lock("pull", "r", "n1").token;
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x", token);
  EXPECT_EQ(t.fail("pull", "r", "n3", "x", token).refusal, Refusal::not_holder);
  EXPECT_EQ(t.fail("pull", "r", "n2", "x", token).refusal, Refusal::stale_token);
}

TEST(Unlock, S15_ARepetitionWithoutATokenIsNotRecognized) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.succeed("pull", "r", "n1").refusal, Refusal::not_held);
}

TEST(Unlock, S15_AHoldThatWasTakenAwayWasNotReleased) {
  TestEngine t;
  const Token expired = t.lock(Ask("pull", "r", "n1").lease(1000)).token;
  t.pass(1000);
  EXPECT_EQ(t.succeed("pull", "r", "n1", expired).refusal, Refusal::not_held);
  const Token broken = t.lock("pull", "r", "n1").token;
  t.break_hold("pull", "r", "stuck");
  EXPECT_EQ(t.succeed("pull", "r", "n1", broken).refusal, Refusal::not_held);
}

TEST(Unlock, S16_ListsTheNodesWaitingOnTheResourceAsTheyWereJustBefore) {
  TestEngine t;
  t.lock(Ask("delete", "r", "n1").whole_resource());
  t.lock("pull", "r", "n2");
  t.lock("delete", "r", "n3");
  t.lock("pull", "r", "n4");
  t.lock("pull", "other", "n8");
  t.lock("pull", "other", "n9");
  EXPECT_THAT(t.status("delete", "r").waiters.nodes, ElementsAre("n2", "n3", "n4"))
      << "all lanes, oldest first";
  EXPECT_THAT(t.status("update", "r").waiters.nodes, ElementsAre("n2", "n3", "n4"))
      << "even of a lane without state";
  const UnlockAnswer answer = t.succeed("delete", "r", "n1");
  EXPECT_THAT(answer.waiters.nodes, ElementsAre("n2", "n3", "n4"));
  EXPECT_THAT(t.status("delete", "r").waiters.nodes, ElementsAre("n4")) << "one skipped, one was granted";
}

TEST(Unlock, S16_SaysWhoIsGrantedTheLaneNext) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  EXPECT_EQ(t.fail("pull", "r", "n1", "x").next.text, "n2");
  EXPECT_EQ(t.fail("pull", "r", "n2", "x").next.text, "");
}

}  // namespace
}  // namespace turnstile
