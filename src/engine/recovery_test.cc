// Section 8 of docs/semantics.md, rule S31 as far as it is the engine's: what the records say is what is
// there after a restart, whether they come from the log, from a snapshot, or from a snapshot taken while the
// server worked.
#include <ctime>

#include "engine/random_work_test.h"
#include "engine/test_engine.h"

namespace turnstile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// From what its sink has taken.
std::unique_ptr<TestEngine> restart(TestEngine& t, EngineSettings settings = {}) {
  return TestEngine::load(t.sink.log.records, t.now, std::move(settings));
}

TEST(Recovery, S31_AHoldIsAsAcknowledged) {
  TestEngine t;
  const Token token = t.lock(Ask("pull", "r", "n1").request("a").info("why").lease(5000)).token;
  t.renew({lane_of("pull", "r"), requester("n1", "a"), token, {}, Progress{3, 4}});
  const Time since = t.now;
  t.pass(10);
  auto again = restart(t);
  EXPECT_EQ(again->loaded.holds, 1u);
  const StatusAnswer status = again->status("pull", "r");
  ASSERT_TRUE(status.holder);
  EXPECT_EQ(name_of(status.holder->who), "n1/a");
  EXPECT_EQ(status.holder->token, token);
  EXPECT_EQ(status.holder->since, since);
  EXPECT_EQ(status.holder->info, "why");
  EXPECT_EQ(status.holder->lease, ms(5000));
  EXPECT_EQ(status.holder->progress, (Progress{3, 4}));
  EXPECT_EQ(again->succeed(lane_of("pull", "r"), requester("n1", "a"), token).refusal, Refusal::none);
}

TEST(Recovery, S31_TheScopeOfHoldsAndWaitersIsAsAcknowledged) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").whole_resource());
  t.lock("update", "r", "n3");
  auto again = restart(t);
  EXPECT_EQ(again->lock("job", "r", "n4").state, LockState::queued);
  again->fail("pull", "r", "n1", "x");
  EXPECT_EQ(again->holder("delete", "r"), "n2");
  EXPECT_EQ(again->holder("update", "r"), "");
}

TEST(Recovery, S31_QueuesAreInOrderAndNewcomersComeAfterThem) {
  TestEngine t;
  for (const char* node : {"n1", "n2", "n3", "n4"}) t.lock("pull", "r", node);
  t.cancel("pull", "r", "n3");
  auto again = restart(t);
  EXPECT_EQ(again->loaded.waiters, 2u);
  again->lock("pull", "r", "n5");
  EXPECT_THAT(again->queue("pull", "r"), ElementsAre("n2", "n4", "n5"));
  EXPECT_EQ(again->lock("pull", "r", "n4").position, 2u);
}

TEST(Recovery, S31_AttemptAndPreviousErrorAreAsAcknowledged) {
  TestEngine t;
  for (const char* node : {"n1", "n2", "n3"}) t.lock("pull", "r", node);
  t.fail("pull", "r", "n1", "first");
  t.lock("pull", "r", "n2");
  auto again = restart(t);
  EXPECT_EQ(again->lock("pull", "r", "n2").attempt, 2u);
  EXPECT_EQ(again->lock("pull", "r", "n2").previous_error, "first");
  again->fail("pull", "r", "n2", "second");
  EXPECT_EQ(again->lock("pull", "r", "n3").attempt, 3u);
  EXPECT_EQ(again->lock("pull", "r", "n3").previous_error, "second");
}

TEST(Recovery, S31_ACompletionIsKeptForTheRestOfItsTime) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.succeed("pull", "r", "n1");
  t.pass(200'000);
  auto again = restart(t, settings);
  EXPECT_EQ(again->lock("pull", "r", "n2").state, LockState::skipped);
  EXPECT_EQ(again->status("pull", "r").completion->node.text, "n1");
  again->pass(100'000);
  EXPECT_EQ(again->lock("pull", "r", "n2").state, LockState::acquired);
}

TEST(Recovery, S31_APermanentFailureIsKept) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.fail_permanently("pull", "r", "n1", "404");
  auto again = restart(t);
  EXPECT_EQ(again->lock("pull", "r", "n2").error, "404");
}

TEST(Recovery, S31_AVoidedCompletionStaysVoid) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "n1");
  t.lock("pull", "r", "n2");
  t.succeed("pull", "r", "n1");
  t.lock("delete", "r", "n1");
  t.succeed("delete", "r", "n1");
  auto again = restart(t, settings);
  EXPECT_EQ(again->lock("pull", "r", "n2").state, LockState::acquired) << "neither completion nor skip";
}

TEST(Recovery, S31_RememberedSkipsAndOtherEndingsAreAsAcknowledged) {
  EngineSettings settings;
  settings.retain_completed = settings.retain_permanent_failure = Duration(0);
  TestEngine t(settings);
  for (const char* node : {"n1", "n2"}) t.lock("pull", "r", node);
  t.succeed("pull", "r", "n1");
  for (const char* node : {"n1", "n2"}) t.lock("pull", "s", node);
  t.fail_permanently("pull", "s", "n1", "404");
  t.pass(5'000);
  auto again = restart(t, settings);
  EXPECT_EQ(again->status("pull", "s", "n2").error, "404");
  EXPECT_EQ(again->lock("pull", "r", "n2").state, LockState::skipped);
  again->pass(5'000);
  EXPECT_FALSE(again->status("pull", "s", "n2").completed);
}

// A snapshot has them in the order of requesters, which says nothing about when they run out: to look through
// all that are there for each one's place would take far longer than this.
TEST(Recovery, ManyEndingsInAnyOrderAreLoadedInReasonableTime) {
  constexpr uint32_t kCount = 200'000;
  std::vector<std::string> nodes;
  for (uint32_t i = 0; i < kCount; ++i) nodes.push_back("node-" + std::to_string(1'000'000 + i));
  const Time now = TestEngine().now;
  std::vector<Record> facts;
  for (uint32_t i = 0; i < kCount; ++i) {
    Record ending;
    ending.kind = RecordKind::ending_set;
    ending.attempt = uint32_t(Ending::skipped);
    ending.lane = {OperationName("pull"), ResourceId("r")};
    ending.who.node = NodeId(nodes[i]);
    ending.until = now + Duration(1 + uint64_t(i) * 7919 % kCount);
    facts.push_back(ending);
  }
  const std::clock_t began = std::clock();
  const auto loaded = TestEngine::load(facts, now);
  EXPECT_LT((std::clock() - began) / CLOCKS_PER_SEC, 20);
  EXPECT_TRUE(loaded->status("pull", "r", nodes[0]).completed);
}

TEST(Recovery, S31_AReleasedTokenIsRemembered) {
  TestEngine t;
  const Token token = t.lock("pull", "r", "n1").token;
  t.succeed("pull", "r", "n1", token);
  auto again = restart(t);
  EXPECT_TRUE(again->succeed("pull", "r", "n1", token).already);
  again->pass(60'000);
  EXPECT_EQ(again->succeed("pull", "r", "n1", token).refusal, Refusal::not_held);
}

TEST(Recovery, S31_ReferencesAreAsAcknowledged) {
  TestEngine t;
  t.add_reference("r", "n1");
  t.add_reference("r", "n2");
  t.release_reference("r", "n1");
  t.lock("pull", "s", "n1");
  t.succeed("pull", "s", "n1");
  t.add_reference("gone", "n1");
  t.lock(Ask("delete", "gone", "n1").dereference());
  auto again = restart(t);
  EXPECT_THAT(again->references("r"), ElementsAre("n2"));
  EXPECT_THAT(again->references("s"), ElementsAre("n1"));
  EXPECT_THAT(again->references("gone"), IsEmpty());
}

TEST(Recovery, S31_TokensGoOnAboveEveryOneThatWasUsed) {
  TestEngine t;
  Token last{};
  for (int i = 0; i < 10; ++i) {
    last = t.lock("job", "r", "n1").token;
    t.succeed("job", "r", "n1");
  }
  EXPECT_GT(restart(t)->lock("job", "r", "n1").token, last);
  EXPECT_GT(TestEngine::load(t.dump().records, t.now)->lock("job", "r", "n1").token, last);
}

TEST(Recovery, S31_TheTokenMarkIsWrittenBeforeATokenOfItsBlockIsUsed) {
  TestEngine t({}, Counters::kTokenBlock - 1);
  t.lock("pull", "r", "n1");  // the last of a block
  t.lock("pull", "s", "n1");  // the first of the next
  const auto& records = t.sink.log.records;
  const auto mark = std::find_if(records.begin(), records.end(),
                                 [](const Record& r) { return r.kind == RecordKind::token_mark; });
  ASSERT_NE(mark, records.end());
  EXPECT_EQ(mark->number, 2 * Counters::kTokenBlock);
  EXPECT_EQ((mark + 1)->number, Counters::kTokenBlock + 1) << "in the same step as the hold";
}

TEST(Recovery, S31_ALeaseHasItsFullTimeAgain) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(5000));
  t.pass(4'999);
  auto again = restart(t);
  again->pass(4'999);
  EXPECT_EQ(again->holder("pull", "r"), "n1");
  again->pass(1);
  EXPECT_EQ(again->last_event().reason, "lease");
}

TEST(Recovery, S31_FullTimeBeginsWhenTheServerCanBeAskedHoweverLongLoadingTook) {
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").lease(5000));
  auto again = restart(t);
  again->now += ms(4'000);  // other resources were loaded meanwhile
  again->engine.restart_times(again->now);
  again->pass(4'999);
  EXPECT_EQ(again->holder("pull", "r"), "n1");
  again->pass(1);
  EXPECT_EQ(again->last_event().reason, "lease");
}

TEST(Recovery, S31_AMonitoredHoldHasItsFullGraceAgain) {
  TestEngine t;
  t.lock(Ask("pull", "open", "n1").monitor(1));
  t.lock(Ask("pull", "broken", "n1").monitor(2));
  t.close_bond("pull", "broken", "n1", 2);
  t.pass(2'999);
  auto again = restart(t);
  again->lock(Ask("pull", "open", "n1").monitor(3));
  again->pass(2'999);
  EXPECT_EQ(again->holder("pull", "broken"), "n1");
  again->pass(1);
  EXPECT_EQ(again->holder("pull", "broken"), "");
  EXPECT_EQ(again->last_event().reason, "bond");
  again->pass(100'000);
  EXPECT_EQ(again->holder("pull", "open"), "n1") << "it has come back in time";
}

TEST(Recovery, S31_AWaiterThatLivedByABondHasItsFullGraceAgain) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.lock(Ask("pull", "r", "n2").poll(2));
  t.lock(Ask("pull", "r", "n3").poll(3));
  t.lock(Ask("pull", "r", "n4").poll(4));
  t.lock("pull", "r", "n5");
  t.break_poll("pull", "r", "n3", 3);
  t.end_poll("pull", "r", "n4", 4);
  t.pass(2'999);
  auto again = restart(t);
  again->pass(2'999);
  EXPECT_THAT(again->queue("pull", "r"), ElementsAre("n2", "n3", "n4", "n5"));
  again->lock(Ask("pull", "r", "n3").poll(13));
  again->pass(1);
  EXPECT_THAT(again->queue("pull", "r"), ElementsAre("n3", "n4", "n5")) << "n4's poll had ended in order";
}

TEST(Recovery, S44_BehindATakeOverBondsHaveTheTimeInWhichALeaderThatWentSilentIsMissed) {
  EngineSettings settings;
  settings.restored_bond_grace = std::chrono::seconds(20);
  TestEngine t;
  t.lock(Ask("pull", "r", "n1").monitor(1));
  t.lock(Ask("pull", "r", "n2").poll(2));
  auto again = restart(t, settings);
  again->pass(19'999);
  EXPECT_EQ(again->holder("pull", "r"), "n1");
  EXPECT_THAT(again->queue("pull", "r"), ElementsAre("n2"));
  again->pass(1);
  EXPECT_EQ(again->holder("pull", "r"), "");
  again->lock(Ask("pull", "r", "n3").monitor(3));
  again->close_bond("pull", "r", "n3", 3);
  again->pass(3'000);
  EXPECT_EQ(again->holder("pull", "r"), "") << "a bond that breaks later has the usual time";
}

TEST(Recovery, S31_AnUnclaimedGrantHasItsFullTimeAgain) {
  TestEngine t;
  for (const char* node : {"n1", "n2"}) t.lock("pull", "r", node);
  t.fail("pull", "r", "n1", "x");
  t.pass(9'999);
  auto again = restart(t);
  again->pass(9'999);
  EXPECT_EQ(again->holder("pull", "r"), "n2");
  again->pass(1);
  EXPECT_EQ(again->last_event().reason, "unclaimed");
}

TEST(Recovery, S31_AClaimSurvives) {
  TestEngine t;
  for (const char* node : {"n1", "n2"}) t.lock("pull", "r", node);
  t.fail("pull", "r", "n1", "x");
  t.status("pull", "r", "n2");
  auto again = restart(t);
  again->pass(100'000);
  EXPECT_EQ(again->holder("pull", "r"), "n2");
}

TEST(Recovery, S31_MaxHoldGoesOnFromWhereItWas) {
  TestEngine t;
  t.lock("pull", "r", "n1");
  t.pass(3'599'999);
  auto again = restart(t);
  again->pass(1);
  EXPECT_EQ(again->last_event().reason, "max_hold");
}

TEST(Recovery, S31_ADereferencingDeleteIsStillOne) {
  TestEngine t;
  t.lock(Ask("update", "r", "n1").whole_resource());
  t.lock(Ask("delete", "r", "n2").dereference());
  t.add_reference("r", "n2");
  auto again = restart(t);
  again->succeed("update", "r", "n1");
  EXPECT_EQ(again->holder("delete", "r"), "n2");
}

TEST(Recovery, S31_NothingIsLeftOfWhatHasEnded) {
  TestEngine t;
  for (const char* node : {"n1", "n2"}) t.lock("job", "r", node);
  t.fail("job", "r", "n1", "x");
  t.succeed("job", "r", "n2");
  t.pass(60'000);
  auto again = restart(t);
  EXPECT_EQ(again->engine.resource_count(), 0u);
  EXPECT_EQ(again->loaded.resources, 0u);
}

// A random life of a few resources, then its log once, twice, and as a snapshot.
TEST(Recovery, S31_LogTwiceAndSnapshotGiveTheSameState) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    TestEngine t;
    RandomWork work(t, seed);
    for (int i = 0; i < 150; ++i) work.step();
    const auto once = restart(t)->facts();
    std::vector<Record> twice = t.sink.log.records;
    twice.insert(twice.end(), t.sink.log.records.begin(), t.sink.log.records.end());
    EXPECT_EQ(TestEngine::load(twice, t.now)->facts(), once) << "seed " << seed;
    std::vector<Record> each_twice;
    for (const Record& record : t.sink.log.records) each_twice.insert(each_twice.end(), 2, record);
    EXPECT_EQ(TestEngine::load(each_twice, t.now)->facts(), once) << "seed " << seed;
    const OwnedLog snapshot = t.dump();
    EXPECT_EQ(TestEngine::load(snapshot.records, t.now)->facts(), once) << "seed " << seed;
  }
}

// What was acknowledged is what is there: the restarted engine tells the same of every lane as the one that
// crashed.
TEST(Recovery, S31_EveryLaneLooksAsItDidBefore) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    TestEngine t;
    RandomWork work(t, seed);
    for (int i = 0; i < 150; ++i) work.step();
    auto again = restart(t);
    EXPECT_EQ(RandomWork::look(*again), RandomWork::look(t)) << "seed " << seed;
  }
}

// A snapshot is written while others go on: steps happen between its records. Together with the log from the
// moment at which it began it must give what the whole log gives.
TEST(Recovery, S31_ASnapshotTakenUnderLoadIsMadeRightByTheLogFromItsBeginning) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    TestEngine t;
    RandomWork work(t, seed);
    for (int i = 0; i < 100; ++i) work.step();
    const size_t began = t.sink.log.records.size();
    OwnedLog snapshot;
    t.engine.dump([&](const Record& record) {
      snapshot.add(record);
      for (int i = 0; i < 3; ++i) work.step();
    });
    for (int i = 0; i < 20; ++i) work.step();
    std::vector<Record> both = snapshot.records;
    both.insert(both.end(), t.sink.log.records.begin() + std::ptrdiff_t(began), t.sink.log.records.end());
    auto fuzzy = TestEngine::load(both, t.now);
    EXPECT_EQ(fuzzy->facts(), restart(t)->facts()) << "seed " << seed;
    EXPECT_GE(fuzzy->lock("job", "fresh", "n").token, t.lock("job", "fresh", "n").token) << "seed " << seed;
  }
}

// A snapshot is taken while others work: what it has seen of later steps is then replayed over it. `old` is
// to skip, an update voids that, and `new` is to skip, so long after; then a restart.
std::unique_ptr<TestEngine> void_replayed_over_a_later_snapshot(int64_t ms_between) {
  EngineSettings settings;
  settings.retain_completed = Duration(0);
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "first");
  t.lock("pull", "r", "old");
  t.succeed("pull", "r", "first");
  t.lock("pull", "r", "second");
  t.lock("pull", "r", "new");
  t.lock("update", "r", "u");
  const size_t snapshot_begins = t.sink.log.records.size();
  t.succeed("update", "r", "u");
  t.pass(ms_between);
  t.succeed("pull", "r", "second");
  const OwnedLog snapshot = t.dump();
  std::vector<Record> facts(snapshot.records.begin(), snapshot.records.end());
  facts.insert(facts.end(), t.sink.log.records.begin() + ptrdiff_t(snapshot_begins),
               t.sink.log.records.end());
  return TestEngine::load(facts, t.now, settings);
}

TEST(Recovery, S31_AVoidThatIsReplayedOverALaterSnapshotTakesOnlyWhatWasThereBefore) {
  auto again = void_replayed_over_a_later_snapshot(1);
  EXPECT_FALSE(again->status("pull", "r", "old").completed);
  EXPECT_TRUE(again->status("pull", "r", "new").completed);
}

// A server's steps often have the same time. Who is forgotten here asks again, waits, and does the work
// twice.
TEST(Recovery, S31_AVoidOfTheSameMicrosecondTakesOnlyWhatWasThereBefore) {
  auto again = void_replayed_over_a_later_snapshot(0);
  EXPECT_FALSE(again->status("pull", "r", "old").completed);
  EXPECT_TRUE(again->status("pull", "r", "new").completed);
}

// What was remembered for longer by an earlier life is voided too.
TEST(Recovery, S31_AVoidStaysAVoidWhenTheClaimTimeWasShortenedBefore) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine before(settings);
  before.lock("pull", "r", "first");
  before.lock("pull", "r", "old");
  before.succeed("pull", "r", "first");
  settings.claim_timeout = ms(100);
  auto t = restart(before, settings);
  ASSERT_TRUE(t->status("pull", "r", "old").completed);
  t->lock("update", "r", "u");
  t->succeed("update", "r", "u");
  std::vector<Record> facts = before.sink.log.records;
  facts.insert(facts.end(), t->sink.log.records.begin(), t->sink.log.records.end());
  EXPECT_FALSE(TestEngine::load(facts, t->now, settings)->status("pull", "r", "old").completed);
}

// Journals of before have no token there.
TEST(Recovery, S31_AVoidWithoutATokenTakesWhatWasRememberedUpToItsTime) {
  EngineSettings settings;
  settings.server_keeps_references = false;
  TestEngine t(settings);
  t.lock("pull", "r", "first");
  t.lock("pull", "r", "old");
  t.succeed("pull", "r", "first");
  t.pass(1);
  t.lock("delete", "r", "d");
  t.succeed("delete", "r", "d");
  std::vector<Record> facts = t.sink.log.records;
  size_t voids = 0;
  for (Record& fact : facts) {
    if (fact.kind != RecordKind::endings_voided) continue;
    fact.number = 0;
    ++voids;
  }
  ASSERT_EQ(voids, 1u);
  EXPECT_FALSE(TestEngine::load(facts, t.now, settings)->status("pull", "r", "old").completed);
}

}  // namespace
}  // namespace turnstile
