// What can be seen: the status of a lane for anybody and for a requester, the list of lanes, and the walks
// over all of them. The rules behind what is seen are tested elsewhere.
#include <ctime>

#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Status, OfAnUnknownLaneIsIdle) {
  TestEngine t;
  const StatusAnswer answer = t.status("pull", "r", "n1");
  EXPECT_EQ(answer.lane, lane_of("pull", "r"));
  EXPECT_EQ(answer.state, LaneState::idle);
  EXPECT_FALSE(answer.holder);
  EXPECT_FALSE(answer.acquired);
  EXPECT_FALSE(answer.completed);
}

TEST(Status, ShowsHolderQueueAndReferences) {
  TestEngine t;
  t.add_reference("r", "n9");
  const Token token = t.lock(Ask("update", "r", "n1").request("a").info("why")).token;
  const Time since = t.now;
  t.pass(5);
  t.lock(Ask("update", "r", "n2").request("b").info("me too"));
  const StatusAnswer answer = t.status("update", "r");
  EXPECT_EQ(answer.state, LaneState::held);
  ASSERT_TRUE(answer.holder);
  EXPECT_EQ(name_of(answer.holder->who), "n1/a");
  EXPECT_EQ(answer.holder->token, token);
  EXPECT_EQ(answer.holder->since, since);
  EXPECT_EQ(answer.holder->info, "why");
  ASSERT_THAT(answer.queue, SizeIs(1));
  EXPECT_EQ(name_of(answer.queue[0].who), "n2/b");
  EXPECT_EQ(answer.queue[0].position, 1u);
  EXPECT_EQ(answer.queue[0].since, since + ms(5));
  EXPECT_EQ(answer.queue[0].info, "me too");
  EXPECT_EQ(answer.queue_length, 1u);
  EXPECT_THAT(answer.references.nodes, ElementsAre("n9"));
}

TEST(Status, IsHeldElseWaitingElseCompletedElseIdle) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  EXPECT_EQ(t.status("pull", "r").state, LaneState::held);
  t.succeed("pull", "r", "n1");
  EXPECT_EQ(t.status("pull", "r").state, LaneState::completed);
  t.lock(Ask("update", "r", "n2").whole_resource());
  t.lock("pull", "r", "n3");
  EXPECT_EQ(t.status("pull", "r").state, LaneState::waiting) << "although a completion is kept";
  EXPECT_EQ(t.status("delete", "r").state, LaneState::idle);
}

TEST(Status, TellsARequesterWhetherItHoldsOrWhereItWaits) {
  TestEngine t;
  const Token token = t.lock("pull", "r", "n1").token;
  t.lock("pull", "r", "n2");
  t.lock("pull", "r", "n3");
  EXPECT_TRUE(t.status("pull", "r", "n1").acquired);
  EXPECT_EQ(t.status("pull", "r", "n1").token, token);
  EXPECT_EQ(t.status("pull", "r", "n3").position, 2u);
  EXPECT_FALSE(t.status("pull", "r", "n3").acquired);
  EXPECT_EQ(t.status("pull", "r", "n3").token, Token::none);
  EXPECT_EQ(t.status("pull", "r", "n4").position, 0u);
}

TEST(Status, WithoutARequesterCompletedSpeaksOfTheLane) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  const StatusAnswer answer = t.status("pull", "r");
  EXPECT_TRUE(answer.completed);
  EXPECT_FALSE(answer.success);
  EXPECT_EQ(answer.error, "404");
  EXPECT_FALSE(t.status("pull", "r", "stranger").completed);
}

TEST(Status, OfALongQueueOnlyTheFrontIsListed) {
  TestEngine t;
  t.lock("pull", "r", "n0");
  for (size_t i = 1; i <= kMostNamed + 5; ++i) t.lock("pull", "r", fmt::format("n{}", i));
  const StatusAnswer answer = t.status("pull", "r", fmt::format("n{}", kMostNamed + 5));
  EXPECT_THAT(answer.queue, SizeIs(kMostNamed));
  EXPECT_EQ(answer.queue_length, kMostNamed + 5);
  EXPECT_EQ(answer.position, kMostNamed + 5);
  EXPECT_THAT(answer.waiters.nodes, SizeIs(kMostNamed));
  EXPECT_EQ(answer.waiters.nodes.back(), fmt::format("n{}", kMostNamed));
  EXPECT_EQ(answer.waiters.count, kMostNamed + 5);
  const UnlockAnswer released = t.succeed("pull", "r", "n0");
  EXPECT_THAT(released.waiters.nodes, SizeIs(kMostNamed));
  EXPECT_EQ(released.waiters.count, kMostNamed + 5);
}

TEST(Status, NamesTheOldestWaitersOfAllLanesInTheOrderInWhichTheyCame) {
  TestEngine t;
  for (const char* operation : {"a", "b", "c"}) t.lock(operation, "r", "holder");
  std::vector<std::string> came;
  for (size_t i = 0; i < kMostNamed + 20; ++i) {
    came.push_back(fmt::format("n{}", i));
    t.lock(i % 7 == 0 ? "a" : i % 3 == 0 ? "b" : "c", "r", came.back());
  }
  const NodesView waiters = t.status("a", "r").waiters;
  EXPECT_EQ(waiters.count, came.size());
  came.resize(kMostNamed);
  EXPECT_THAT(waiters.nodes, ElementsAreArray(came));
}

// To look at a hundred waiters of each of its lanes for each of its lanes took a page of a thousand 15 s.
TEST(Status, OfAResourceWithManyLanesTakesNoLongerThanItHasLanes) {
  constexpr int kLanes = 300;
  TestEngine t;
  std::vector<std::string> operations, nodes;
  for (int i = 0; i < kLanes; ++i) operations.push_back(fmt::format("t{}", i));
  for (size_t i = 0; i <= kMostNamed; ++i) nodes.push_back(fmt::format("n{}", i));
  const std::clock_t asked = std::clock();
  for (const std::string& node : nodes)
    for (const std::string& operation : operations)
      t.engine.lock(Ask(operation, "r", node).command, t.now, t.scratch());
  const std::clock_t began = std::clock();
  for (int i = 0; i < 8000; ++i) {
    const StatusCommand command{lane_of(operations[size_t(i % kLanes)], "r"), {}};
    EXPECT_EQ(t.engine.status(command, t.now, t.scratch()).waiters.count, kLanes * kMostNamed);
  }
  EXPECT_LT(std::clock() - began, (began - asked) * 10) << "each that asked looked at all lanes, too";
}

std::vector<std::string> names_of(const ListAnswer& list) {
  std::vector<std::string> names;
  for (const StatusAnswer& each : list.page)
    names.push_back(std::string(each.lane.resource.text) + "/" + std::string(each.lane.operation.text));
  return names;
}

struct Listed : ::testing::Test {
  Listed() {
    for (const char* resource : {"b", "a1", "a2"}) t.lock("pull", resource, "n1");
    t.lock("job", "a1", "n1");
    t.succeed("pull", "a2", "n1");
    t.lock(Ask("update", "c", "n1").whole_resource());
    t.lock("pull", "c", "n2");
    t.add_reference("only-referenced", "n1");
  }
  ListCommand command;
  TestEngine t;
};

TEST_F(Listed, IsInTheOrderOfResourceAndOperationWithoutIdleLanes) {
  EXPECT_THAT(names_of(t.list(command)),
              ElementsAre("a1/job", "a1/pull", "a2/pull", "b/pull", "c/pull", "c/update"));
}

TEST_F(Listed, PagesGoOnAfterTheCursorEvenWithinAResource) {
  std::vector<std::string> all;
  command.limit = 1;
  for (bool more = true; more;) {
    const ListAnswer& list = t.list(command);
    ASSERT_THAT(list.page, SizeIs(1)) << "no page is empty, not even the last";
    all.push_back(names_of(list)[0]);
    EXPECT_EQ(list.next, list.page[0].lane);
    command.after = list.next;
    more = list.more;
  }
  EXPECT_THAT(all, ElementsAre("a1/job", "a1/pull", "a2/pull", "b/pull", "c/pull", "c/update"));
}

TEST_F(Listed, SaysMoreOnlyWhenAnotherLaneThatIsWantedFollows) {
  EXPECT_FALSE(t.list(command).more);
  command.limit = 6;
  EXPECT_FALSE(t.list(command).more);
  command.limit = 5;
  EXPECT_TRUE(t.list(command).more);
  command.limit = 1;
  command.state = LaneState::waiting;
  EXPECT_FALSE(t.list(command).more) << "what follows is not waiting";
}

TEST_F(Listed, IsTheSameHoweverSmallTheSlices) {
  for (size_t most : {1, 2, 3, 100}) {
    command.limit = 4;
    const ListAnswer& list = t.list(command, most);
    EXPECT_THAT(names_of(list), ElementsAre("a1/job", "a1/pull", "a2/pull", "b/pull")) << most;
    EXPECT_TRUE(list.more);
  }
}

TEST_F(Listed, S33_OthersWorkBetweenTheSlicesAndWhatStaysIsListed) {
  ListWalk walk(command);
  ASSERT_FALSE(t.engine.list_some(walk, 1, t.now));
  t.lock("pull", "new", "n1");
  t.fail("pull", "b", "n1", "no");
  t.release_reference("only-referenced", "n1");
  while (!t.engine.list_some(walk, 1, t.now)) {
  }
  std::vector<std::string> names = names_of(walk.answer());
  std::erase(names, "new/pull");  // may be listed or not
  EXPECT_THAT(names, ElementsAre("a1/job", "a1/pull", "a2/pull", "c/pull", "c/update"));
}

TEST(List, S33_APageEndsWhenItsTextsAreLong) {
  TestEngine t;
  const std::string info(4000, 'i');
  for (int i = 0; i < 1000; ++i) t.lock(Ask("job", fmt::format("r{:04}", i), "n1").info(info));
  ListCommand command;
  command.limit = 1000;
  size_t pages = 0, lanes = 0;
  for (bool more = true; more; ++pages) {
    const ListAnswer& list = t.list(command);
    EXPECT_LE(list.page.size(), 300u);
    lanes += list.page.size();
    command.after = list.next;
    more = list.more;
  }
  EXPECT_EQ(lanes, 1000u);
  EXPECT_EQ(pages, 4u);
}

TEST_F(Listed, CanBeFilteredByPrefixOperationAndState) {
  command.prefix = "a";
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("a1/job", "a1/pull", "a2/pull"));
  command.operation = OperationName("pull");
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("a1/pull", "a2/pull"));
  command.state = LaneState::completed;
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("a2/pull"));
  command.prefix = {};
  command.state = LaneState::waiting;
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("c/pull"));
  command.prefix = "nothing";
  EXPECT_THAT(t.list(command).page, IsEmpty());
}

TEST_F(Listed, S57_CanBeFilteredByAPartOfTheIdByNodeAndByWhatIsActiveOrQueued) {
  command.contains = "2";
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("a2/pull"));
  command.contains = {};
  command.group = LaneGroup::active;
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("a1/job", "a1/pull", "b/pull", "c/pull", "c/update"));
  t.lock("pull", "b", "n7");
  command.group = LaneGroup::queued;
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("b/pull", "c/pull")) << "held or not";
  command.group = LaneGroup::any;
  command.node = NodeId("n7");
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("b/pull")) << "it waits there";
  t.lock("pull", "z", "n7");
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("b/pull", "z/pull")) << "and holds that";
  command.node = NodeId("nobody");
  EXPECT_THAT(t.list(command).page, IsEmpty());
}

TEST_F(Listed, S57_ANodeIsFoundAmongThoseThatAnAnswerNames) {
  for (size_t i = 0; i < kMostNamed + 1; ++i) t.lock("pull", "b", fmt::format("w{:03}", i));
  command.node = NodeId("w099");
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("b/pull"));
  command.node = NodeId("w100");
  EXPECT_THAT(t.list(command).page, IsEmpty());
}

TEST_F(Listed, S57_CanBeginWithTheLongestQueueOrTheOldestHold) {
  for (const char* node : {"w1", "w2", "w3"}) t.lock("pull", "b", node);
  command.order = ListOrder::queue;
  command.limit = 3;
  for (size_t most : {1, 100}) {
    const ListAnswer& list = t.list(command, most);
    EXPECT_THAT(names_of(list), ElementsAre("b/pull", "c/pull", "a1/job"));
    EXPECT_FALSE(list.more) << "there is no place in this order to go on from";
  }
  t.pass(1);
  t.lock("job", "a-newer", "n1");
  command.order = ListOrder::since;
  command.limit = 100;
  const std::vector<std::string> names = names_of(t.list(command));
  ASSERT_THAT(names, SizeIs(7));
  EXPECT_EQ(names[4], "a-newer/job") << "behind all older holds";
  EXPECT_THAT(names, testing::IsSupersetOf({"a2/pull", "c/pull"})) << "what is not held comes last";
}

TEST_F(Listed, S57_CountsAllThatMatchWhereverThePageIs) {
  EXPECT_EQ(t.list(command).matched, std::nullopt);
  command.count = true;
  command.limit = 2;
  EXPECT_EQ(t.list(command).matched, 6u);
  command.after = lane_of("pull", "b");
  EXPECT_EQ(t.list(command).matched, 6u);
  EXPECT_THAT(names_of(t.list(command)), ElementsAre("c/pull", "c/update"));
  command.after = {};
  command.operation = OperationName("pull");
  EXPECT_EQ(t.list(command).matched, 4u);
}

TEST_F(Listed, S57_NamesAsFewAsWantedAndTellsHowManyThereAre) {
  for (const char* node : {"w1", "w2", "w3"}) t.lock("pull", "b", node);
  t.add_reference("b", "n1");
  t.add_reference("b", "n2");
  command.prefix = "b";
  command.names = 1;
  const StatusAnswer& one = t.list(command).page.at(0);
  EXPECT_THAT(one.queue, SizeIs(1));
  EXPECT_EQ(one.queue_length, 3u);
  EXPECT_THAT(one.waiters.nodes, ElementsAre("w1"));
  EXPECT_EQ(one.waiters.count, 3u);
  EXPECT_THAT(one.references.nodes, ElementsAre("n1"));
  EXPECT_EQ(one.references.count, 2u);
  command.names = 0;
  EXPECT_THAT(t.list(command).page.at(0).queue, IsEmpty());
  EXPECT_EQ(t.list(command).page.at(0).queue_length, 3u);
}

TEST(Kept, S58_CompletionsAreCountedByOperationAsTheyComeAndGo) {
  TestEngine t;
  const auto kept = [](Engine& engine, std::string_view operation) {
    uint64_t found = 0;
    engine.for_each_kept(
        [&](std::string_view name, uint64_t count) { found += name == operation ? count : 0; });
    return found;
  };
  for (const char* resource : {"r1", "r2", "r3"}) {
    t.lock("pull", resource, "n1");
    t.succeed("pull", resource, "n1");
  }
  EXPECT_EQ(kept(t.engine, "pull"), 3u);
  t.lock("update", "r1", "n1");
  t.succeed("update", "r1", "n1");
  EXPECT_EQ(kept(t.engine, "pull"), 2u) << "the update has voided one";
  EXPECT_EQ(kept(t.engine, "update"), 0u);
  const auto again = TestEngine::load(t.sink.log.records, t.now);
  EXPECT_EQ(kept(again->engine, "pull"), 2u) << "also after a restart";
  t.pass(10'000'000);
  EXPECT_EQ(kept(t.engine, "pull"), 0u) << "their time is over";
}

TEST_F(Listed, LeavesNothingBehind) {
  const size_t count = t.engine.resource_count();
  command.limit = 2;
  t.list(command);
  EXPECT_EQ(t.engine.resource_count(), count);
  t.pass(10'000'000);
  t.release_node("n1");
  t.release_node("n2");
  EXPECT_EQ(t.engine.resource_count(), 0u) << "every resource that was looked at can still be forgotten";
}

TEST_F(Listed, EveryLaneIsVisitedForTheGauges) {
  size_t held = 0, waiting = 0, own = 0;
  t.engine.for_each_lane([&](std::string_view operation, bool is_held, size_t waiters) {
    held += is_held;
    waiting += waiters;
    own += operation.empty();
  });
  EXPECT_EQ(held, 4u);
  EXPECT_EQ(waiting, 1u);
  EXPECT_EQ(own, 1u) << "names that are not configured are counted together";
}

TEST(Measures, TellHowLongAWaitAndAHoldTook) {
  TestEngine t;
  Effects out;
  const auto times = [&](MeasureKind kind) {
    std::vector<Duration> found;
    for (const Measure& measure : out.measures)
      if (measure.kind == kind && measure.operation == "update") found.push_back(measure.time);
    return found;
  };
  t.engine.lock(Ask("update", "r", "n1").command, t.now, out);
  EXPECT_THAT(times(MeasureKind::granted), ElementsAre(ms(0)));
  out.clear();
  t.now += ms(10);
  t.engine.lock(Ask("update", "r", "n2").command, t.now, out);
  EXPECT_THAT(times(MeasureKind::queued), SizeIs(1));
  out.clear();
  t.now += ms(20);
  t.engine.unlock({lane_of("update", "r"), requester("n1"), Token::none, true, {}, false}, t.now, out);
  EXPECT_THAT(times(MeasureKind::ended), ElementsAre(ms(30)));
  EXPECT_THAT(times(MeasureKind::granted), ElementsAre(ms(20)));
  EXPECT_THAT(times(MeasureKind::left_queue), SizeIs(1));
}

}  // namespace
}  // namespace turnstile
