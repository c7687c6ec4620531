// Holes of an earlier prototype in mutual exclusion, as far as one thread can show them: X1, X3, X4, X5, X7.
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;

TEST(Regression, X1_TwoRequestsOfOneNodeAreTwoRequesters) {
  TestEngine t;
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").request("thread 1")).state, LockState::acquired);
  EXPECT_EQ(t.lock(Ask("pull", "r", "n1").request("thread 2")).state, LockState::queued);
  EXPECT_EQ(t.lock("pull", "r", "n2").state, LockState::queued);
  t.unlock({lane_of("pull", "r"), requester("n1", "thread 1"), Token::none, false, "x", false});
  EXPECT_EQ(t.holder("pull", "r"), "n1/thread 2") << "the first unlock lets no third one in";
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2"));
}

TEST(Regression, X3_AGrantAfterAFailureIsNotTakenAwayAgain) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.fail("pull", "r", "n1", "x");
  const Token token = t.status("pull", "r", "n2").token;
  // Whatever others do short of unlock, expiry, a broken bond or a break, the hold stays.
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n3");
  t.status("pull", "r", "n1");
  t.cancel("pull", "r", "n1");
  t.cancel("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n3", "x");
  t.subscribe("pull", "r", "n2", 5);
  t.close_bond("pull", "r", "n2", 5);
  t.lock("delete", "r", "n4");
  t.succeed("delete", "r", "n4");
  t.add_reference("r", "n5");
  t.release_node("n2");
  t.pass(60'000);
  EXPECT_EQ(t.status("pull", "r", "n2").token, token);
  EXPECT_EQ(t.succeed("pull", "r", "n2", token).refusal, Refusal::none);
}

TEST(Regression, X4_WithScopeResourceEveryPairOfOperationsExcludesTheOtherInEachOrder) {
  const char* operations[] = {"pull", "update", "delete"};
  for (const char* first : operations)
    for (const char* second : operations)
      for (const bool holder_has_it : {true, false}) {
        if (first == std::string_view(second)) continue;
        SCOPED_TRACE(std::string(first) + " then " + second +
                     (holder_has_it ? ", holder's scope" : ", newcomer's scope"));
        TestEngine t;
        t.lock(Ask(first, "r", "n1").scope(holder_has_it ? Scope::resource : Scope::operation));
        const LockAnswer answer =
            t.lock(Ask(second, "r", "n2").scope(holder_has_it ? Scope::operation : Scope::resource));
        EXPECT_EQ(answer.state, LockState::queued);
        EXPECT_EQ(t.holder(first, "r"), "n1");
        EXPECT_EQ(t.holder(second, "r"), "");
        t.fail(first, "r", "n1", "x");
        EXPECT_EQ(t.holder(second, "r"), "n2") << "and goes next";
      }
}

// Ids that some way of joining or escaping would make one.
const std::string_view kTrickyIds[] = {
    "a",    "a:b",        "b:c", "a/b", "b/c", "a%3Ab", "a%2Fb", "%",         "\"",
    "\\\"", "'",          " ",   "a ",  " a",  "a b",   "ä",     "a\xCC\x88",  // the same letter, decomposed
    "日本", "\U0001F512", "A",   ".",   "..",  "*",     "a:b:c", "null",      "0"};

TEST(Regression, X5_IdsWithAnyCharactersNeverAlias) {
  TestEngine t;
  size_t lanes = 0;
  for (std::string_view operation : kTrickyIds)
    for (std::string_view resource : kTrickyIds) {
      ASSERT_EQ(t.lock(operation, resource, "n1").state, LockState::acquired)
          << operation << " and " << resource << " are another lane's";
      ++lanes;
    }
  auto again = TestEngine::load(t.sink.log.records, t.now);
  EXPECT_EQ(again->loaded.holds, lanes);
  auto snapshot = TestEngine::load(again->dump().records, t.now);
  EXPECT_EQ(snapshot->loaded.holds, lanes);
  for (std::string_view operation : kTrickyIds)
    for (std::string_view resource : kTrickyIds) {
      const Token token = t.status(operation, resource, "n1").token;
      EXPECT_EQ(again->status(operation, resource, "n1").token, token);
      EXPECT_EQ(snapshot->status(operation, resource, "n1").token, token);
    }
}

TEST(Regression, X5_RequestersWithAnyCharactersNeverAlias) {
  TestEngine t;
  t.lock("pull", "r", "holder");
  uint32_t position = 0;
  for (std::string_view node : kTrickyIds)
    for (std::string_view request : kTrickyIds)
      ASSERT_EQ(t.lock(Ask("pull", "r", node).request(request)).position, ++position)
          << node << " " << request;
  EXPECT_EQ(t.lock("pull", "r", "a:b").position, ++position) << "without a request id";
  auto again = TestEngine::load(t.sink.log.records, t.now);
  EXPECT_EQ(again->loaded.waiters, position);
  again->succeed("pull", "r", "holder");
  // How each wait ended is remembered by requester, and through a snapshot.
  auto after = TestEngine::load(again->dump().records, t.now);
  for (std::string_view node : kTrickyIds)
    for (std::string_view request : kTrickyIds)
      EXPECT_TRUE(after->status("pull", "r", node, request).success);
  EXPECT_FALSE(after->status("pull", "r", "a", "b:c:d").completed);
}

TEST(Regression, X7_AnUnlockThatArrivesLateDoesNotFreeALaterHoldOfTheSameNode) {
  TestEngine t;
  const Token old = t.lock(Ask("pull", "r", "n1").lease(1000)).token;
  t.pass(1000);
  const Token current = t.lock("pull", "r", "n1").token;
  EXPECT_EQ(t.succeed("pull", "r", "n1", old).refusal, Refusal::stale_token);
  EXPECT_EQ(t.status("pull", "r", "n1").token, current);
  EXPECT_EQ(t.renew({lane_of("pull", "r"), requester("n1"), old, {}, {}}).refusal, Refusal::stale_token);
}

TEST(Regression, X7_ARepeatedUnlockDoesNotFreeALaterHoldOfTheSameNode) {
  TestEngine t;
  const Token old = t.lock("job", "r", "n1").token;
  t.succeed("job", "r", "n1", old);
  const Token current = t.lock("job", "r", "n1").token;
  EXPECT_TRUE(t.succeed("job", "r", "n1", old).already);
  EXPECT_EQ(t.status("job", "r", "n1").token, current);
}

}  // namespace
}  // namespace turnstile
