// Two or three servers on one etcd in memory, each turn of theirs made by the test.
#include "replica/replica.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "journal/etcd_test_support.h"
#include "journal/journal_test_support.h"
#include "replica/server_entry.h"

namespace turnstile::testing {
namespace {

using etcd::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A server: what it loads, and what it is told.
class Server final : public ReplicaOwner {
 public:
  Server(FakeEtcd& etcd, ManualTime& time, const std::string& name)
      : replica(etcd, {"p", name, "http://" + name, seconds(5), {}}, *this,
                {time, [this, &time](Duration wait) {
                   time.pass(wait);
                   if (on_pause) on_pause();
                 }}) {
    replica.journal_by_hand = &journal_turn;
  }

  bool follows() const override { return is_warm; }
  void follow(const Record& record) override { warm.apply(record); }
  void forget_followed() override { warm = {}, ++forgotten; }
  Result<void> begin_life(std::unique_ptr<Journal> begun) override {
    if (refuses) return fail("the disk is on fire");
    World found = std::exchange(warm, {});
    loaded = 0;
    auto done = begun->recover([&](const Record& record) { found.apply(record), ++loaded; });
    if (!done) return std::unexpected(done.error());
    world = found;
    latest = done->latest;
    journal = std::move(begun);
    journal->start([](uint64_t) {}, [this](const Error& error) { replica.doubt(error.message); });
    return {};
  }
  void end_life() override {
    if (before_end) std::exchange(before_end, nullptr)();
    journal.reset();
  }
  void tell(const ReplicaView& view) override { told = view.leader; }

  bool leads() const { return journal != nullptr; }
  bool commit(uint64_t n) {
    const uint64_t sequence = journal->append(step_records(n), at(int64_t(n) * 1000));
    while (journal_turn()) {
    }
    return journal->durable() >= sequence;
  }
  void turn(int times = 1) {
    for (int i = 0; i < times; ++i) {
      replica.keep_lease();
      replica.turn();
    }
  }

  std::unique_ptr<Journal> journal;
  std::function<bool()> journal_turn;
  World world;
  Time latest{};
  std::string told;
  std::function<void()> before_end, on_pause;
  World warm;         // as a standby
  size_t loaded = 0;  // records that were left for the take-over
  int forgotten = 0;
  bool refuses = false, is_warm = true;
  Replica replica;
};

class ReplicaTest : public ::testing::Test {
 protected:
  etcd::LeaseId leaders_lease() { return etcd_.state().at("p/leader").lease; }
  // Time in which both keep their leases.
  void pass(seconds time) {
    for (; time > seconds(0); time -= seconds(1)) {
      time_.pass(seconds(1));
      a_.replica.keep_lease();
      b_.replica.keep_lease();
    }
  }

  FakeEtcd etcd_;
  ManualTime time_;
  Server a_{etcd_, time_, "a"}, b_{etcd_, time_, "b"};
};

TEST_F(ReplicaTest, TheFirstLeadsAndTheOtherKnowsWhere) {
  a_.turn(3);
  b_.turn(3);
  EXPECT_TRUE(a_.leads());
  EXPECT_FALSE(b_.leads());
  EXPECT_EQ(b_.told, "http://a");
  EXPECT_TRUE(b_.replica.view().in_step);
  EXPECT_EQ(a_.replica.view().role, ReplicaRole::leader);
  EXPECT_EQ(a_.replica.view().term, b_.replica.view().term);
}

TEST_F(ReplicaTest, S44_WhenTheLeadersLeaseIsOverAnotherTakesOverAllThatWasConfirmed) {
  a_.turn(2);
  b_.turn(2);
  for (uint64_t n = 1; n <= 5; ++n) ASSERT_TRUE(a_.commit(n));
  b_.turn();
  ASSERT_TRUE(a_.commit(6));
  etcd_.end_lease(leaders_lease());
  b_.turn(2);
  ASSERT_TRUE(b_.leads());
  EXPECT_EQ(b_.world, world_after(6));
  EXPECT_EQ(b_.latest, at(6000)) << "its clock, and with it its tokens, begin behind that";
  EXPECT_FALSE(a_.commit(7)) << "a leader that does not know yet writes nothing";
  a_.turn(2);
  EXPECT_FALSE(a_.leads());
  EXPECT_EQ(a_.told, "http://b");
  ASSERT_TRUE(b_.commit(7));
}

TEST_F(ReplicaTest, S44_ALeaseNotRenewedInTimeEndsTheTermFromTheMomentItWasSent) {
  a_.turn(2);
  time_.pass(seconds(3));
  a_.turn();
  EXPECT_TRUE(a_.leads());
  etcd_.all_fail = {Failure::unknown, "no member answers"};
  time_.pass(seconds(4));
  a_.turn();
  EXPECT_TRUE(a_.leads());
  time_.pass(seconds(1));
  a_.turn();
  EXPECT_FALSE(a_.leads());
  EXPECT_EQ(a_.told, "");
  a_.turn(3);
  EXPECT_FALSE(a_.leads());
  etcd_.all_fail.reset();
  etcd_.end_lease(leaders_lease());
  a_.turn(3);
  EXPECT_TRUE(a_.leads()) << "comes back by itself";
}

TEST_F(ReplicaTest, S44_ARenewalThatIsConfirmedTooLateDoesNotBringATermBack) {
  a_.turn(2);
  ASSERT_TRUE(a_.commit(1));
  (void)a_.journal->append(step_records(2), at(2000));
  time_.pass(seconds(6));
  size_t commits = 0;
  a_.before_end = [&] {
    a_.replica.keep_lease();  // the other thread: etcd has not counted so far yet
    commits = etcd_.commits;
  };
  a_.replica.turn();
  EXPECT_FALSE(a_.leads());
  EXPECT_GT(commits, 0u);
  EXPECT_EQ(etcd_.commits, commits) << "what was pending is not written any more";
}

TEST_F(ReplicaTest, S47_WhoWakesUpWhenItsTimeIsOverSaysThatItDoesNotLeadBeforeItsNextTurn) {
  a_.turn(2);
  EXPECT_EQ(a_.replica.view().role, ReplicaRole::leader);
  time_.pass(seconds(6));
  EXPECT_EQ(a_.replica.view().role, ReplicaRole::standby);
  EXPECT_EQ(a_.replica.view().leader, "");
  EXPECT_FALSE(a_.replica.view().in_step);
}

TEST_F(ReplicaTest, S47_ARenewalThatSucceedsAfterItsTimeDoesNotBringATermBack) {
  a_.turn(2);
  b_.turn(2);
  const etcd::LeaseId lease = leaders_lease();
  etcd_.forgotten.insert(lease);
  time_.pass(seconds(6));
  a_.replica.keep_lease();  // before anybody has noticed how late it is
  EXPECT_EQ(a_.replica.view().role, ReplicaRole::standby);
  a_.replica.turn();
  EXPECT_FALSE(a_.leads());
}

TEST_F(ReplicaTest, S46_AServerThatEndsDoesNotWaitForAnEtcdThatRenewsLeasesAndTakesNoWrites) {
  a_.turn(2);
  (void)a_.journal->append(step_records(1), at(1000));
  for (int i = 0; i < 100; ++i) etcd_.commit_faults.push_back({Failure::no_space, false});
  int pauses = 0;
  a_.on_pause = [&] {
    a_.replica.keep_lease();
    if (++pauses == 5) a_.replica.give_up();
  };
  a_.end_life();
  EXPECT_EQ(pauses, 5);
  a_.replica.hand_over();
  EXPECT_FALSE(etcd_.state().contains("p/leader"));
}

TEST_F(ReplicaTest, S46_AServerThatEndsDoesNotBeginATermThatItWasElectedForMeanwhile) {
  etcd_.before_commit = [&] { a_.replica.give_up(); };
  a_.turn();
  EXPECT_FALSE(a_.leads());
  EXPECT_FALSE(etcd_.state().contains("p/leader"));
}

TEST_F(ReplicaTest, S41_ARenewalThatSucceedsOnARevokedLeaseDoesNotKeepALeader) {
  a_.turn(2);
  b_.turn(2);
  const etcd::LeaseId lease = leaders_lease();
  etcd_.forgotten.insert(lease);
  etcd_.end_lease(lease);
  b_.turn(2);
  ASSERT_TRUE(b_.leads());
  a_.replica.turn();
  EXPECT_TRUE(a_.leads()) << "it believes so,";
  const uint64_t read = a_.journal->barrier();
  while (a_.journal_turn()) {
  }
  EXPECT_LT(a_.journal->durable(), read) << "and shows nothing";
  a_.turn();
  EXPECT_FALSE(a_.leads());
}

TEST_F(ReplicaTest, S44_AnIdleLeaderWhoseKeyIsGoneLeadsNoLongerWithTheNextRenewal) {
  a_.turn(2);
  b_.turn(2);
  etcd_.erase("p/leader");  // by hand: the lease is well
  b_.turn(2);
  ASSERT_TRUE(b_.leads());
  a_.replica.keep_lease();
  EXPECT_EQ(a_.replica.view().role, ReplicaRole::standby);
  a_.turn(2);
  EXPECT_FALSE(a_.leads());
  EXPECT_EQ(a_.told, "http://b");
}

TEST_F(ReplicaTest, S44_ALeaderThatCannotLookForItsKeyWithinTheLeaseLeadsNoLonger) {
  a_.turn(2);
  etcd_.range_faults = 1000;
  for (int i = 0; i < 4; ++i) {
    time_.pass(seconds(1));
    a_.replica.keep_lease();
    a_.replica.turn();
    EXPECT_TRUE(a_.leads());
  }
  time_.pass(seconds(1));
  a_.turn();
  EXPECT_FALSE(a_.leads());
}

TEST_F(ReplicaTest, AnElectionWhoseOutcomeIsNotKnownIsSettledByLooking) {
  a_.turn();  // the lease, and an election,
  etcd_.end_lease(leaders_lease());
  b_.replica.keep_lease();
  etcd_.commit_faults = {{Failure::unknown, true}};
  b_.turn();
  EXPECT_FALSE(b_.leads());
  b_.turn();
  EXPECT_TRUE(b_.leads());
}

TEST_F(ReplicaTest, AHandOverIsAtOnce) {
  a_.turn(2);
  b_.turn(2);
  ASSERT_TRUE(a_.commit(1));
  a_.end_life();
  a_.replica.hand_over();
  b_.turn();
  EXPECT_TRUE(b_.leads());
  EXPECT_EQ(b_.world, world_after(1));
}

TEST_F(ReplicaTest, S49_AServerThatWasRestartedDoesNotNameItself) {
  a_.turn(2);
  ASSERT_TRUE(a_.commit(1));
  Server restarted(etcd_, time_, "a");
  restarted.turn(2);
  EXPECT_EQ(restarted.told, "");
  EXPECT_EQ(restarted.replica.view().leader, "");
  EXPECT_TRUE(restarted.replica.view().in_step);
  b_.turn(2);
  EXPECT_EQ(b_.told, "http://a") << "who cannot know yet names it";
  etcd_.end_lease(leaders_lease());
  restarted.turn(2);
  EXPECT_TRUE(restarted.leads());
  EXPECT_EQ(restarted.world, world_after(1));
}

TEST_F(ReplicaTest, AServerThatWasElectedAndCannotServeLetsAnotherTry) {
  a_.refuses = true;
  a_.turn(3);
  EXPECT_FALSE(a_.leads());
  b_.turn(2);
  EXPECT_TRUE(b_.leads());
}

TEST_F(ReplicaTest, AStandbyReadsOnlyWhatIsNewWhenItTakesOver) {
  a_.turn(2);
  for (uint64_t n = 1; n <= 300; ++n) ASSERT_TRUE(a_.commit(n));
  b_.turn(2);
  ASSERT_TRUE(a_.commit(301));
  etcd_.end_lease(leaders_lease());
  const size_t before = etcd_.values_read;
  b_.turn(2);
  ASSERT_TRUE(b_.leads());
  EXPECT_EQ(b_.world, world_after(301));
  EXPECT_LT(etcd_.values_read - before, 10u);
}

TEST_F(ReplicaTest, S46_AStandbyHasAppliedTheLogWhenItTakesOver) {
  a_.turn(2);
  for (uint64_t n = 1; n <= 30; ++n) ASSERT_TRUE(a_.commit(n));
  b_.turn(2);
  EXPECT_EQ(b_.warm, world_after(30));
  const World all = world_after(30);
  ASSERT_TRUE(a_.journal->snapshot([&](const Journal::Write& write) { all.dump(write); }));
  ASSERT_TRUE(a_.commit(31));
  b_.turn();
  EXPECT_EQ(b_.warm, world_after(31)) << "also behind a snapshot";
  ASSERT_TRUE(a_.commit(32));
  etcd_.end_lease(leaders_lease());
  b_.turn(2);
  ASSERT_TRUE(b_.leads());
  EXPECT_EQ(b_.world, world_after(32));
  EXPECT_EQ(b_.loaded, step_records(32).size()) << "only the last batch was left";
  EXPECT_EQ(b_.forgotten, 0);
}

TEST_F(ReplicaTest, S46_AStandbyThatWasAwayForASnapshotBeginsAnew) {
  a_.turn(2);
  for (uint64_t n = 1; n <= 5; ++n) ASSERT_TRUE(a_.commit(n));
  b_.turn(2);
  for (uint64_t n = 6; n <= 9; ++n) ASSERT_TRUE(a_.commit(n));
  const World all = world_after(9);
  ASSERT_TRUE(a_.journal->snapshot([&](const Journal::Write& write) { all.dump(write); }));
  b_.turn(2);
  EXPECT_EQ(b_.forgotten, 1);
  EXPECT_EQ(b_.warm, world_after(9));
}

TEST_F(ReplicaTest, S46_WhatAStandbyHasAppliedAndIsOtherwiseNowIsThrownAway) {
  a_.turn(2);
  for (uint64_t n = 1; n <= 5; ++n) ASSERT_TRUE(a_.commit(n));
  b_.turn(2);
  etcd_.make("p/log/0000000000000003", etcd_.state().at("p/log/0000000000000003").value);
  etcd_.end_lease(leaders_lease());
  b_.turn(2);
  ASSERT_TRUE(b_.leads());
  EXPECT_EQ(b_.forgotten, 1);
  EXPECT_EQ(b_.world, world_after(5));
}

// Seed 200237 of the replicated simulation.
TEST_F(ReplicaTest, S44_ATermThatIsOverBeforeItHasReadServesNothing) {
  a_.turn(2);
  for (uint64_t n = 1; n <= 5; ++n) ASSERT_TRUE(a_.commit(n));
  b_.replica.keep_lease();
  b_.turn();
  etcd_.end_lease(leaders_lease());
  etcd_.before_commit = [this] {
    time_.pass(seconds(6));
  };  // it is elected when its lease is over by its clock,
  b_.replica.turn();  // ... and etcd, which has a new leader, counts from the beginning
  EXPECT_FALSE(b_.leads());
  b_.turn(3);
  ASSERT_TRUE(b_.leads());
  EXPECT_EQ(b_.world, world_after(5));
}

// Seed 300237.
TEST_F(ReplicaTest, S44_NoLeadersKeyIsWithoutALease) {
  b_.is_warm = false;
  b_.replica.keep_lease();
  a_.turn(2);
  b_.turn();
  // Between the look that finds no leader and the campaign the other thread finds its lease gone.
  etcd_.end_lease(leaders_lease());
  etcd_.after_range = [this] {
    for (const etcd::LeaseId lease : etcd_.leases()) etcd_.end_lease(lease);
    b_.replica.keep_lease();
  };
  b_.replica.turn();
  ASSERT_TRUE(etcd_.after_range == nullptr) << "the race was played";
  EXPECT_FALSE(etcd_.state().contains("p/leader"));
  b_.turn(2);
  EXPECT_TRUE(b_.leads());
  EXPECT_NE(leaders_lease(), etcd::LeaseId::none);
}

TEST_F(ReplicaTest, S49_AStandbyThatCannotReadTheLogStillNamesTheLeader) {
  a_.turn(3);
  ASSERT_TRUE(a_.commit(1));
  b_.turn();
  etcd_.bytes_a_second = 15;  // the leader's key arrives, a batch does not
  ASSERT_TRUE(a_.commit(2));
  b_.turn(2);
  EXPECT_EQ(b_.told, "http://a");
  EXPECT_FALSE(b_.replica.view().in_step);
  EXPECT_FALSE(b_.replica.view().problem.empty());
}

TEST_F(ReplicaTest, S49_AStandbyWithoutALeaseFollowsAndNamesTheLeader) {
  a_.turn(3);
  ASSERT_TRUE(a_.commit(1));
  etcd_.grants_fail = {Failure::no_space, "etcd is full"};
  b_.turn(2);
  EXPECT_EQ(b_.told, "http://a");
  EXPECT_EQ(b_.warm, world_after(1));
  EXPECT_FALSE(b_.replica.view().problem.empty());
  etcd_.end_lease(leaders_lease());
  b_.turn(2);
  EXPECT_FALSE(b_.leads()) << "a key without a lease would never end";
  etcd_.grants_fail.reset();
  time_.pass(seconds(1));
  b_.turn(2);
  EXPECT_TRUE(b_.leads());
  EXPECT_TRUE(b_.replica.view().problem.empty());
}

TEST_F(ReplicaTest, AServerThatHasNotReadAllLetsTheOthersTakeOverFirst) {
  a_.turn(3);
  b_.turn();
  time_.pass(seconds(3));
  a_.turn();
  b_.turn();  // it knows of both by now
  ASSERT_TRUE(a_.commit(1));
  etcd_.bytes_a_second = 15;
  ASSERT_TRUE(a_.commit(2));
  b_.turn();
  etcd_.bytes_a_second.reset();
  etcd_.end_lease(leaders_lease());
  b_.turn();
  EXPECT_FALSE(b_.leads());
  time_.pass(seconds(1));
  b_.turn(2);
  EXPECT_TRUE(b_.leads());
}

TEST_F(ReplicaTest, AnotherFormatIsRefused) {
  etcd_.make("p/format", "turnstile 2");
  EXPECT_FALSE(a_.replica.check());
  a_.turn(3);
  EXPECT_FALSE(a_.leads());
}

TEST_F(ReplicaTest, ADeniedReadIsASettingThatIsWrongAndAnEtcdThatIsAwayIsNot) {
  etcd_.all_fail = {Failure::denied, "permission denied"};
  EXPECT_FALSE(a_.replica.check());
  etcd_.all_fail = {Failure::not_done, "nobody answers"};
  EXPECT_TRUE(a_.replica.check());
  etcd_.all_fail.reset();
  EXPECT_TRUE(a_.replica.check());
}

TEST_F(ReplicaTest, WhoMayReadAndNotWriteHasASettingThatIsWrong) {
  etcd_.commit_faults = {{Failure::denied, false}};
  const Result<void> checked = a_.replica.check();
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("write p/"), std::string::npos) << checked.error().message;
  etcd_.commit_faults = {{Failure::no_space, false}};
  EXPECT_TRUE(a_.replica.check()) << "an etcd that is full is no setting";
  const auto before = etcd_.state();
  EXPECT_TRUE(a_.replica.check());
  EXPECT_EQ(etcd_.state().size(), before.size()) << "it leaves nothing behind";
}

TEST_F(ReplicaTest, AnUnfinishedCopyIsRefused) {
  a_.turn(2);
  ASSERT_TRUE(a_.replica.write_format(kEtcdCopying));
  EXPECT_FALSE(b_.replica.check());
  a_.end_life();
  a_.replica.hand_over();
  b_.turn(3);
  EXPECT_FALSE(b_.leads());
  EXPECT_FALSE(a_.replica.write_format(kEtcdFormat)) << "only the term that began it";
}

TEST_F(ReplicaTest, EveryServerIsNamed) {
  a_.turn(3);
  b_.turn(3);
  time_.pass(seconds(3));
  a_.turn();
  const auto servers = a_.replica.view().servers;
  ASSERT_EQ(servers.size(), 2u);
  EXPECT_EQ(servers[0].name, "a");
  EXPECT_TRUE(servers[0].leads);
  EXPECT_EQ(servers[1].url, "http://b");
  EXPECT_FALSE(servers[1].leads);
}

TEST_F(ReplicaTest, AStandbysLagIsWhatItHasFoundItselfOrWhatIsWrittenWhileItIsSilent) {
  a_.turn(3);
  b_.turn(3);
  const auto lag = [this] { return a_.replica.view().servers.at(1).lag_batches; };
  // It reads along: what the leader tells ten seconds later says nothing about it.
  for (uint64_t n = 1; n <= 40; ++n) {
    ASSERT_TRUE(a_.commit(n));
    pass(seconds(1));
    b_.replica.turn();
    a_.replica.turn();
    if (n > 12) {
      EXPECT_LE(lag(), 1u) << n;
    }
  }
  for (uint64_t n = 41; n <= 47; ++n) ASSERT_TRUE(a_.commit(n));
  for (int i = 0; i < 40; ++i) {
    pass(seconds(1));
    a_.replica.turn();
  }
  EXPECT_GE(lag(), 7u) << "it has not looked since";
  EXPECT_LE(lag(), 17u) << "and what it had read was told at most ten seconds later";
  b_.replica.turn();
  for (int i = 0; i < 22; ++i) {
    pass(seconds(1));
    b_.replica.turn();
    a_.replica.turn();
  }
  EXPECT_EQ(lag(), 0u);
}

TEST_F(ReplicaTest, TwoServersWithOneUrlAreToldApart) {
  a_.turn(2);
  ASSERT_TRUE(a_.leads());
  Server namesake(etcd_, time_, "a");
  std::string said;
  set_log(LogLevel::warning, LogFormat::text);
  const auto listen = [&] {
    ::testing::internal::CaptureStderr();
    namesake.turn();
    said += ::testing::internal::GetCapturedStderr();
  };
  for (int i = 0; i < 14; ++i) listen(), pass(seconds(1));
  EXPECT_EQ(said.find("--advertise"), std::string::npos) << said << "a restart looks like that for a while";
  for (int i = 0; i < 10; ++i) listen(), pass(seconds(1));
  const size_t first = said.find("--advertise");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("--advertise", first + 1), std::string::npos) << "once";
  set_log(LogLevel::off, LogFormat::text);
}

TEST_F(ReplicaTest, AServerThatIsBusyDoesNotTellOfItWithEveryLook) {
  a_.turn(3);
  etcd::Revision last = 0;
  int told = 0;
  for (uint64_t n = 1; n <= 120; ++n) {
    time_.pass(milliseconds(500));
    ASSERT_TRUE(a_.commit(n));
    a_.turn();
    told += std::exchange(last, etcd_.state().at("p/servers/a").mod_revision) != last;
  }
  EXPECT_GE(told, 6);
  EXPECT_LE(told, 8) << "in a minute";
  b_.turn(2);
  etcd_.end_lease(leaders_lease());
  time_.pass(seconds(2));
  b_.turn(3);
  ASSERT_TRUE(b_.leads());
  EXPECT_TRUE(decode_server_entry(etcd_.state().at("p/servers/b").value)->leads) << "that is told soon";
}

TEST_F(ReplicaTest, AFullEtcdRefusesNewWorkUntilSomethingCanBeWrittenAgain) {
  a_.turn(3);
  ASSERT_TRUE(a_.commit(1));
  // It is carried out all the same (no rollback), which is found out; so nothing is left to be tried again.
  etcd_.commit_faults = {{Failure::no_space, true}};
  ASSERT_TRUE(a_.commit(2));
  EXPECT_TRUE(a_.journal->overloaded());
  const uint64_t read = a_.journal->barrier();
  while (a_.journal_turn()) {
  }
  EXPECT_GE(a_.journal->durable(), read) << "who only looks is answered,";
  EXPECT_TRUE(a_.journal->overloaded()) << "which says nothing about room";
  etcd_.commit_faults = {{Failure::no_space, false}};
  a_.turn();
  EXPECT_TRUE(a_.journal->overloaded());
  a_.turn();
  EXPECT_FALSE(a_.journal->overloaded());
  ASSERT_TRUE(a_.commit(3));
}

TEST_F(ReplicaTest, WhoCouldNotTakeOverBecauseEtcdIsFullIsNotReadyAndKnowsNothingOfItAfterItsTerm) {
  a_.turn(3);
  b_.turn(3);
  ASSERT_TRUE(b_.replica.view().in_step);
  etcd_.commit_faults = {{Failure::no_space, true}};
  ASSERT_TRUE(a_.commit(1));
  EXPECT_TRUE(a_.replica.statistics().no_space());
  etcd_.end_lease(leaders_lease());
  for (int i = 0; i < 5; ++i) etcd_.commit_faults.push_back({Failure::no_space, false});
  b_.replica.turn();
  EXPECT_FALSE(b_.replica.view().in_step);
  a_.turn();
  EXPECT_FALSE(a_.leads());
  EXPECT_FALSE(a_.replica.statistics().no_space());
}

TEST(ServerEntry, IsReadAsItWasWritten) {
  const ServerEntry entry{"a", "http://a:1", true, 17, Time(Duration(99))};
  const auto read = decode_server_entry(encode(entry));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "a");
  EXPECT_EQ(read->url, "http://a:1");
  EXPECT_TRUE(read->leads);
  EXPECT_EQ(read->number, 17u);
  EXPECT_EQ(read->since, entry.since);
  EXPECT_FALSE(decode_server_entry("nonsense"));
}

}  // namespace
}  // namespace turnstile::testing
