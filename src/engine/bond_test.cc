// Section 6 of docs/semantics.md, rule S21: connections that show that a requester is alive.
#include <ctime>

#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Bond, S21_AMonitoredHoldEndsWhenItsConnectionHasBeenBrokenForTheGrace) {
  TestEngine t;
  EXPECT_TRUE(t.lock(Ask("pull", "r", "n1").monitor(1)).bonded);
  EXPECT_TRUE(t.has_bond("pull", "r", "n1", 1));
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.pass(10'000'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1") << "an open connection lives for ever";
  t.take_events();
  t.close_bond("pull", "r", "n1", 1);
  EXPECT_FALSE(t.has_bond("pull", "r", "n1", 1));
  t.pass(2'999);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.pass(1);
  EXPECT_THAT(t.take_events(), ElementsAre("expired pull n1: bond", "granted pull n2"));
  EXPECT_EQ(t.wake(2).attempt, 2u);
  EXPECT_EQ(t.wake(2).previous_error, "bond");
}

TEST(Bond, S21_ANewConnectionWithinTheGraceSavesTheHold) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  t.close_bond("pull", "r", "n1", 1);
  t.pass(2'999);
  EXPECT_TRUE(t.lock(Ask("pull", "r", "n1").monitor(2)).bonded);
  t.pass(1'000'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.close_bond("pull", "r", "n1", 1);
  t.pass(1'000'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1") << "the old one was closed before";
  t.close_bond("pull", "r", "n1", 2);
  t.pass(3'000);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(Bond, S21_OnlyTheLastOfSeveralCounts) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  t.lock(Ask("pull", "r", "n1").monitor(2));
  t.subscribe("pull", "r", "n1", 3);
  t.close_bond("pull", "r", "n1", 1);
  t.close_bond("pull", "r", "n1", 3);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.close_bond("pull", "r", "n1", 2);
  t.pass(3'000);
  EXPECT_EQ(t.holder("pull", "r"), "");
}

TEST(Bond, S21_ASubscriptionOpenedBeforeTheLockIsABond) {
  TestEngine t;
  t.subscribe("pull", "r", "n1", 1);
  t.lock(Ask("pull", "r", "n1").monitor(2));
  t.close_bond("pull", "r", "n1", 2);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
  t.close_bond("pull", "r", "n1", 1);
  t.pass(3'000);
  EXPECT_EQ(t.last_event().reason, "bond");
}

TEST(Bond, S21_ASubscriptionOpenedAfterTheConnectionBrokeIsABond) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  t.close_bond("pull", "r", "n1", 1);
  t.pass(2'999);
  t.subscribe("pull", "r", "n1", 2);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
}

TEST(Bond, S21_ASubscriptionThatNamesNobodyOrSomebodyElseIsNoBond) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").request("a").monitor(1));
  t.subscribe("pull", "r");
  t.subscribe("pull", "r", "n1", 2, "b");
  t.subscribe("pull", "r", "n1", 3);
  t.subscribe("update", "r", "n1", 4, "a");
  t.call([&](Effects& out) {
    t.engine.close_bond(lane_of("pull", "r"), requester("n1", "a"), BondId(1), t.now, out);
    return true;
  });
  t.pass(3'000);
  EXPECT_EQ(t.last_event().reason, "bond");
}

TEST(Bond, S21_AskingAgainWithMonitorFalseEndsTheConnectionsBond) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  EXPECT_FALSE(t.lock(Ask("pull", "r", "n1").unmonitored(2)).bonded);
  EXPECT_FALSE(t.has_bond("pull", "r", "n1", 1));
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1") << "it depends on no connection now";
  t.lock(Ask("pull", "r", "n1").monitor(3));
  t.close_bond("pull", "r", "n1", 3);
  t.pass(3'000);
  EXPECT_EQ(t.holder("pull", "r"), "") << "the first connection does not count any more";
}

TEST(Bond, S21_AskingAgainWithMonitorFalseEndsTheBondOfAWaitersConnectionInOrder) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").monitor(1));
  t.lock(Ask("pull", "r", "n2").unmonitored(2));
  EXPECT_FALSE(t.has_bond("pull", "r", "n2", 1));
  t.close_bond("pull", "r", "n2", 1);
  t.pass(100'000);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2")) << "it was ended, not broken";
}

TEST(Bond, S21_AHoldWithoutMonitorDoesNotDependOnConnections) {
  TestEngine t;
  EXPECT_FALSE(t.lock(Ask("pull", "r", "n1").unmonitored(1)).bonded);
  t.subscribe("pull", "r", "n1", 2);
  t.close_bond("pull", "r", "n1", 1);
  t.close_bond("pull", "r", "n1", 2);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1");
}

TEST(Bond, S21_AMonitoredHoldThatNeverHadABondEndsAfterTheGrace) {
  TestEngine t;
  EXPECT_FALSE(t.lock(Ask("pull", "r", "n1").monitor(0)).bonded);
  t.pass(3'000);
  EXPECT_EQ(t.last_event().reason, "bond");
}

TEST(Bond, S21_TheBondOfAConnectionEndsWithTheHold) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  t.fail("pull", "r", "n1", "x");
  EXPECT_FALSE(t.has_bond("pull", "r", "n1", 1));
  t.lock("pull", "r", "n1");
  t.close_bond("pull", "r", "n1", 1);
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n1") << "the next hold is not monitored";
}

TEST(Bond, S21_AWaiterWhoseConnectionHasBeenBrokenForTheGraceLeavesTheQueue) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  EXPECT_TRUE(t.lock(Ask("pull", "r", "n2").monitor(2)).bonded);
  t.lock("pull", "r", "n3");
  t.take_events();
  t.close_bond("pull", "r", "n2", 2);
  t.pass(2'999);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2", "n3"));
  t.pass(1);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n3"));
  EXPECT_THAT(t.take_events(), ElementsAre("cancelled pull n2"));
  EXPECT_EQ(t.last_event().reason, "bond");
}

TEST(Bond, S21_AWaiterWithASubscriptionLeavesWhenItCloses) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.subscribe("pull", "r", "n2", 2);
  t.subscribe("pull", "r", "n3", 3);
  t.lock("pull", "r", "n3");  // without monitor, and opened before
  t.close_bond("pull", "r", "n2", 2);
  t.close_bond("pull", "r", "n3", 3);
  t.pass(3'000);
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
}

TEST(Bond, S21_AWaiterWhoseLongPollBreaksLeavesAfterTheGrace) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.break_poll("pull", "r", "n2", 2);
  t.pass(2'999);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2"));
  t.pass(1);
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
  EXPECT_THAT(t.wakes, IsEmpty()) << "nobody is there to be answered";
}

TEST(Bond, S21_AnyNewBondStopsTheGraceOfAWaiter) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  for (const char* node : {"n2", "n3", "n4"}) {
    t.lock(Ask("pull", "r", node).poll(2));
    t.break_poll("pull", "r", node, 2);
  }
  t.pass(2'999);
  t.lock(Ask("pull", "r", "n2").poll(5));
  t.lock(Ask("pull", "r", "n3").monitor(6));
  t.subscribe("pull", "r", "n4", 7);
  t.pass(100'000);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2", "n3", "n4"));
}

TEST(Bond, S21_AskingAgainWithoutABondDoesNotStopTheGraceOfAWaiter) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.break_poll("pull", "r", "n2", 2);
  t.lock("pull", "r", "n2");
  t.pass(3'000);
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
}

TEST(Bond, S21_AWaiterWithAnotherBondLeftStays) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock(Ask("pull", "r", "n2").poll(3));
  t.subscribe("pull", "r", "n2", 4);
  t.break_poll("pull", "r", "n2", 2);
  t.close_bond("pull", "r", "n2", 4);
  t.pass(100'000);
  EXPECT_THAT(t.queue("pull", "r"), ElementsAre("n2"));
  t.break_poll("pull", "r", "n2", 3);
  t.pass(3'000);
  EXPECT_THAT(t.queue("pull", "r"), IsEmpty());
}

TEST(Bond, S21_AWaiterThatNeverHadABondStaysUntilItsTurn) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  t.lock("pull", "r", "n2");
  t.pass(1'000'000);
  t.fail("pull", "r", "n1", "x");
  EXPECT_EQ(t.holder("pull", "r"), "n2");
}

TEST(Bond, S21_AWaiterThatLeavesLetsTheNextGo) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("delete", "r", "n2").whole_resource().poll(2));
  t.lock("update", "r", "n3");
  t.break_poll("delete", "r", "n2", 2);
  t.take_events();
  t.pass(3'000);
  EXPECT_THAT(t.take_events(), ElementsAre("cancelled delete n2", "granted update n3"));
}

TEST(Bond, S21_AWaiterWhoseGraceWasOverBeforeTheHoldEndedIsNotGrantedByALateSweep) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(4000));
  t.lock(Ask("pull", "r", "gone").poll(2));
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.break_poll("pull", "r", "gone", 2);
  t.now += ms(5000);  // the grace was over at 3 s, the lease at 4 s
  t.sweep();
  EXPECT_EQ(t.holder("pull", "r"), "n3");
}

TEST(Bond, S21_AMonitoredWaitersGrantLivesByItsBonds) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").monitor(2));
  t.fail("pull", "r", "n1", "x");
  EXPECT_TRUE(t.has_bond("pull", "r", "n2", 2));
  t.pass(100'000);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
  t.close_bond("pull", "r", "n2", 2);
  t.pass(3'000);
  EXPECT_EQ(t.last_event().reason, "bond");
}

TEST(Bond, S21_AMonitoredWaiterGrantedInItsGraceHasOnlyTheRestOfIt) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").monitor(2));
  t.close_bond("pull", "r", "n2", 2);
  t.pass(2'000);
  t.fail("pull", "r", "n1", "x");
  t.pass(999);
  EXPECT_EQ(t.holder("pull", "r"), "n2");
  t.pass(1);
  EXPECT_EQ(t.last_event().reason, "bond");
}

// Each of them moved all who stood behind it: a gateway that went away with half of a hundred thousand
// waiters kept everybody from their resource, and threads with them, for seconds.
TEST(Bond, S21_ManyWhoLeaveALongQueueAtOnceAreTakenOutTogether) {
  constexpr int kWaiters = 160'000;
  EngineSettings settings;
  settings.max_queue = kWaiters;
  TestEngine t(settings);
  t.lock("t", "r", "holder");
  std::vector<std::string> nodes;
  for (int i = 0; i < kWaiters; ++i) nodes.push_back(fmt::format("n{}", i));
  const std::clock_t joining = std::clock();
  for (int i = 0; i < kWaiters; ++i) {
    LockCommand ask = Ask("t", "r", nodes[size_t(i)]).command;
    ask.monitor = i % 2 == 0;
    ask.bond = BondId(1);
    t.engine.lock(ask, t.now, t.scratch());
  }
  const std::clock_t joined = std::clock();
  for (int i = 0; i < kWaiters; i += 2)
    t.engine.close_bond(lane_of("t", "r"), requester(nodes[size_t(i)]), BondId(1), t.now, t.scratch());
  t.now += settings.bond_grace;
  const std::clock_t leaving = std::clock();
  t.engine.expire(t.now, t.scratch(), SIZE_MAX, [](Effects&) {});
  EXPECT_LT(std::clock() - leaving, joined - joining) << "all came one by one, half of them go together";
  EXPECT_EQ(t.status("t", "r").queue_length, kWaiters / 2);
  EXPECT_EQ(t.status("t", "r", "n99").position, 50u);
}

}  // namespace
}  // namespace turnstile
