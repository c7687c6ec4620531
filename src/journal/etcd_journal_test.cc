// The journal of a term, on an etcd in memory whose answers a test plans.
#include "journal/etcd_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "journal/etcd_test_support.h"
#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

using etcd::Failure;
using ::testing::HasSubstr;

class EtcdJournalTest : public ::testing::Test {
 protected:
  // Somebody leads, and the one before does no longer.
  void elect() {
    etcd_.erase(keys_.leader());
    term_ = etcd_.make(keys_.leader(), "http://here");
    over_ = false;
  }
  Result<World> begin() {
    end();
    auto image = std::make_unique<EtcdImage>(etcd_, keys_);
    EXPECT_TRUE(image->refresh(term_, EtcdImage::Look::all, kWithin));
    journal_ = make_etcd_journal(
        etcd_, keys_, {term_, [this] { return over_; }}, std::move(image), options_,
        {time_,
         [this](Duration wait) { time_.pass(wait), waited_ += wait > Duration(0), over_ |= waited_ > 50; }},
        statistics_, by_thread_ ? nullptr : &turn_);
    World world;
    auto done = journal_->recover([&](const Record& record) { world.apply(record); });
    if (!done) return std::unexpected(done.error());
    report_ = *done;
    error_.clear();
    journal_->start([this](uint64_t sequence) { durable_ = sequence; },
                    [this](const Error& error) { error_ = error.message; });
    return world;
  }
  void end() {
    over_ = journal_ != nullptr && !error_.empty();
    journal_.reset();
    over_ = false;
    waited_ = 0;
    durable_ = 0;
  }
  uint64_t append(uint64_t n) { return journal_->append(step_records(n), at(int64_t(n) * 1000)); }
  bool commit(uint64_t n) {
    const uint64_t sequence = append(n);
    while (turn_()) {
    }
    return durable_ >= sequence;
  }
  size_t log_keys() {
    size_t count = 0;
    for (const auto& [key, value] : etcd_.state()) count += key.starts_with("p/log/");
    return count;
  }
  size_t chunks() {
    size_t count = 0;
    for (const auto& [key, value] : etcd_.state()) count += key.starts_with("p/snap/0");
    return count;
  }
  Result<World> next_leader() {
    elect();
    return begin();
  }

  static constexpr std::chrono::milliseconds kWithin{100};
  const EtcdKeys keys_{"p"};
  FakeEtcd etcd_;
  ManualTime time_;
  EtcdJournalOptions options_;
  EtcdStatistics statistics_;
  etcd::Revision term_ = 0;
  bool over_ = false;
  int waited_ = 0;
  std::function<bool()> turn_;
  bool by_thread_ = false;  // the journal has one of its own
  std::atomic<uint64_t> durable_ = 0;
  std::string error_;
  Recovered report_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(EtcdJournalTest, TheNextLeaderHasWhatWasConfirmed) {
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(commit(n));
  const auto world = next_leader();
  ASSERT_TRUE(world);
  EXPECT_EQ(*world, world_after(20));
  EXPECT_EQ(report_.batches, 20u);
  EXPECT_EQ(report_.latest, at(20'000));
  for (uint64_t n = 21; n <= 25; ++n) ASSERT_TRUE(commit(n));
  EXPECT_EQ(*next_leader(), world_after(25));
}

TEST_F(EtcdJournalTest, S41_ADeposedLeaderWritesNothingAndIsTold) {
  ASSERT_TRUE(next_leader());
  ASSERT_TRUE(commit(1));
  etcd_.before_commit = [this] { elect(); };
  EXPECT_FALSE(commit(2));
  EXPECT_THAT(error_, HasSubstr("another server leads"));
  EXPECT_EQ(*begin(), world_after(1));
}

TEST_F(EtcdJournalTest, S47_AnAnswerThatComesWhenTheTermIsOverIsNotBelieved) {
  ASSERT_TRUE(next_leader());
  ASSERT_TRUE(commit(1));
  etcd_.before_commit = [this] { over_ = true; };  // it sleeps, and the answer waits for it
  EXPECT_FALSE(commit(2));
  EXPECT_THAT(error_, HasSubstr("time of this term was over"));
  EXPECT_EQ(*next_leader(), world_after(2)) << "it was done, and is for the next one to tell";
}

TEST_F(EtcdJournalTest, S47_ABarrierThatIsConfirmedWhenTheTermIsOverShowsNothing) {
  ASSERT_TRUE(next_leader());
  const uint64_t barrier = journal_->barrier();
  etcd_.before_commit = [this] { over_ = true; };
  while (turn_()) {
  }
  EXPECT_LT(journal_->durable(), barrier);
}

TEST_F(EtcdJournalTest, S42_WhatChangesNothingWaitsForAWriteThatBeginsAfterIt) {
  ASSERT_TRUE(next_leader());
  ASSERT_TRUE(commit(1));
  const uint64_t barrier = journal_->barrier();
  EXPECT_GT(barrier, journal_->durable());
  const size_t before = etcd_.commits;
  const etcd::Revision revision = etcd_.revision();
  ASSERT_TRUE(turn_());
  EXPECT_EQ(etcd_.commits, before + 1);
  EXPECT_EQ(etcd_.revision(), revision) << "an empty transaction leaves no trace";
  EXPECT_GE(journal_->durable(), barrier);
  // One that waits for a batch needs none of its own.
  append(2);
  EXPECT_EQ(journal_->barrier(), journal_->barrier());
  while (turn_()) {
  }
  EXPECT_EQ(etcd_.commits, before + 2);
  // And a leader that was deposed meanwhile lets it never pass.
  const uint64_t never = journal_->barrier();
  elect();
  EXPECT_FALSE(turn_());
  EXPECT_LT(journal_->durable(), never);
  EXPECT_FALSE(error_.empty());
}

TEST_F(EtcdJournalTest, S43_AnUnknownOutcomeIsSettledByTheSameTransactionAgain) {
  ASSERT_TRUE(next_leader());
  etcd_.commit_faults = {{Failure::unknown, true}, {Failure::unknown, false}, {Failure::not_done, false}};
  ASSERT_TRUE(commit(1));
  etcd_.commit_faults = {{Failure::unknown, false}, {Failure::unknown, true}};
  ASSERT_TRUE(commit(2));
  EXPECT_EQ(log_keys(), 2u);
  EXPECT_EQ(*next_leader(), world_after(2));
}

TEST_F(EtcdJournalTest, S43_AGuardRefusedOnASecondTryLeavesTheOutcomeUnknown) {
  ASSERT_TRUE(next_leader());
  etcd_.commit_faults = {{Failure::unknown, true}};
  etcd_.before_commit = [this] { etcd_.before_commit = [this] { elect(); }; };
  EXPECT_FALSE(commit(1));
  EXPECT_THAT(error_, HasSubstr("not known"));
  EXPECT_EQ(*begin(), world_after(1)) << "it was written, and nobody was answered";
}

TEST_F(EtcdJournalTest, S44_AnEtcdThatIsAwayEndsTheTermWhenItsTimeIsOver) {
  ASSERT_TRUE(next_leader());
  etcd_.all_fail = {Failure::unknown, "no member answers"};
  EXPECT_FALSE(commit(1));
  EXPECT_THAT(error_, HasSubstr("no member answers"));
  EXPECT_GT(statistics_.errors(), 10u);
}

TEST_F(EtcdJournalTest, NoSpaceIsNoRollbackAndWhatWasWrittenAllTheSameIsConfirmed) {
  ASSERT_TRUE(next_leader());
  etcd_.commit_faults = {{Failure::no_space, true}};
  ASSERT_TRUE(commit(1));
  EXPECT_TRUE(statistics_.no_space());
  etcd_.commit_faults = {{Failure::no_space, false}, {Failure::no_space, false}};
  ASSERT_TRUE(commit(2)) << "when there is room again";
  EXPECT_FALSE(statistics_.no_space());
  EXPECT_EQ(*next_leader(), world_after(2));
}

TEST_F(EtcdJournalTest, BatchesTakeNoMoreStepsThanTheirLimitAllows) {
  options_.full_batch_bytes = 4000;
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 100; ++n) append(n);
  size_t turns = 0;
  while (turn_()) ++turns;
  EXPECT_GT(turns, 5u);
  EXPECT_EQ(durable_, 100u);
  EXPECT_EQ(log_keys(), turns);
  EXPECT_EQ(*next_leader(), world_after(100));
}

TEST_F(EtcdJournalTest, AStepTooLargeForAKeyBecomesSeveralOfOneTransaction) {
  options_.key_bytes = 500;
  ASSERT_TRUE(next_leader());
  const size_t before = etcd_.commits;
  ASSERT_TRUE(commit(5));
  EXPECT_EQ(etcd_.commits, before + 1);
  EXPECT_EQ(log_keys(), 3u);
  ASSERT_TRUE(commit(6));
  const auto world = next_leader();
  EXPECT_EQ((*world)["last"], 6u);
  EXPECT_EQ(report_.batches, 2u);
}

TEST_F(EtcdJournalTest, S45_ABatchTooLargeForATransactionCountsOnlyWithItsLastKey) {
  options_.key_bytes = 200;
  options_.transaction_keys = 3;
  ASSERT_TRUE(next_leader());
  ASSERT_TRUE(commit(1));
  // The second transaction of the next batch comes too late.
  etcd_.before_commit = [this] { etcd_.before_commit = [this] { elect(); }; };
  EXPECT_FALSE(commit(5));
  EXPECT_EQ(log_keys(), 4u) << "three keys of it are there";
  EXPECT_LE(etcd_.most_operations, 3u);
  EXPECT_EQ(*begin(), world_after(1));
  EXPECT_EQ(log_keys(), 1u) << "what was incomplete is erased";
  ASSERT_TRUE(commit(2));
  EXPECT_EQ(*next_leader(), world_after(2));
}

TEST_F(EtcdJournalTest, S45_WhatFollowsAGapIsErasedAndNotBelieved) {
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 6; ++n) ASSERT_TRUE(commit(n));
  etcd_.erase(keys_.log(5));
  EXPECT_EQ(*next_leader(), world_after(4));
  EXPECT_EQ(log_keys(), 4u);
}

TEST_F(EtcdJournalTest, S45_AnErasureWhoseOutcomeIsNotKnownIsSettledByLooking) {
  for (const bool carried_out : {true, false}) {
    ASSERT_TRUE(next_leader());
    const size_t before = log_keys();
    for (uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(commit(n));
    etcd_.erase(keys_.log(before + 2));
    elect();
    etcd_.commit_faults = {{Failure::unknown, carried_out}};
    const auto world = begin();
    ASSERT_TRUE(world) << world.error().message;
    EXPECT_EQ(log_keys(), before + 1);
  }
}

TEST_F(EtcdJournalTest, S45_AnErasureThatIsRefusedBecauseAnotherLeadsIsNotTakenForDone) {
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(commit(n));
  etcd_.erase(keys_.log(2));
  elect();
  etcd_.commit_faults = {{Failure::unknown, true}};
  etcd_.before_commit = [this] { etcd_.before_commit = [this] { elect(); }; };
  const auto world = begin();
  ASSERT_FALSE(world);
  EXPECT_THAT(world.error().message, HasSubstr("another server leads"));
}

TEST_F(EtcdJournalTest, ADamagedKeyStopsATakeOverAndNamesItself) {
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(commit(n));
  etcd_.make(keys_.log(2), "nonsense");
  const auto world = next_leader();
  ASSERT_FALSE(world);
  EXPECT_THAT(world.error().message, HasSubstr(keys_.log(2)));
  EXPECT_EQ(log_keys(), 3u) << "nothing was changed";
}

TEST_F(EtcdJournalTest, ASnapshotErasesTheLogBeforeItInTheMomentItCounts) {
  options_.chunk_bytes = 100;
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 10; ++n) ASSERT_TRUE(commit(n));
  const World world = world_after(10);
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { world.dump(write); }));
  EXPECT_EQ(log_keys(), 0u);
  EXPECT_GT(etcd_.compacted, term_);
  for (uint64_t n = 11; n <= 13; ++n) ASSERT_TRUE(commit(n));
  EXPECT_EQ(*next_leader(), world_after(13));
  EXPECT_GT(report_.snapshot_records, 0u);
  // The next one takes its place, also in etcd.
  const size_t keys = etcd_.state().size();
  const World now = world_after(13);
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { now.dump(write); }));
  EXPECT_LE(etcd_.state().size(), keys);
  EXPECT_EQ(*next_leader(), world_after(13));
}

TEST_F(EtcdJournalTest, BatchesDoNotWaitForACompaction) {
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(commit(n));
  by_thread_ = true;
  ASSERT_TRUE(next_leader());
  bool written = false;
  etcd_.on_compact = [&] {
    const uint64_t sequence = append(4);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (durable_ < sequence && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    written = durable_ >= sequence;
  };
  const World world = world_after(3);
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { world.dump(write); }));
  EXPECT_TRUE(written);
  end();
}

TEST_F(EtcdJournalTest, S43_WhatWasSentTwiceDoesNoHarmHoweverLateItsSecondCopyArrives) {
  options_.chunk_bytes = 100;
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 6; ++n) ASSERT_TRUE(commit(n));
  etcd_.erase(keys_.log(5));
  elect();
  etcd_.keep_sent = true;
  ASSERT_TRUE(begin());  // erases what is behind the gap
  uint64_t steps = 4;
  const auto commit_and_play_back = [&] {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(commit(++steps));
    for (const etcd::Transaction& each : std::deque(etcd_.sent)) etcd_.arrive_late(each);
  };
  commit_and_play_back();
  for (int i = 0; i < 3; ++i) {
    etcd_.make(keys_.chunk(keys_.generation(1, 1), 0), "left of a snapshot that was not finished");
    const World now = world_after(steps);
    ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { now.dump(write); }));
    commit_and_play_back();
  }
  EXPECT_TRUE(error_.empty()) << error_;
  EXPECT_EQ(*next_leader(), world_after(steps));
}

TEST_F(EtcdJournalTest, ASnapshotThatWasNotFinishedCountsForNothing) {
  options_.chunk_bytes = 100;
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 10; ++n) ASSERT_TRUE(commit(n));
  const World world = world_after(10);
  int records = 0;
  const auto taken = journal_->snapshot([&](const Journal::Write& write) {
    world.dump([&](const Record& record) {
      if (++records == 5) elect();
      write(record);
    });
  });
  EXPECT_FALSE(taken);
  EXPECT_EQ(*begin(), world_after(10));
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { world.dump(write); }));
  size_t chunks = 0;
  for (const auto& [key, value] : etcd_.state())
    if (key.starts_with("p/snap/0")) {
      ++chunks;
      EXPECT_THAT(key, HasSubstr(keys_.generation(term_, 11))) << "the unfinished one is gone, too";
    }
  EXPECT_GT(chunks, 0u);
}

TEST_F(EtcdJournalTest, WhatIsLeftOfASnapshotThatWasNotFinishedMakesRoomBeforeTheNextOneIsWritten) {
  options_.chunk_bytes = 100;
  for (const bool with_one_that_counts : {false, true}) {
    ASSERT_TRUE(next_leader());
    for (uint64_t n = 1; n <= 10; ++n) ASSERT_TRUE(commit(n));
    const World world = world_after(10);
    const auto take = [&] {
      return journal_->snapshot([&](const Journal::Write& write) { world.dump(write); });
    };
    if (with_one_that_counts) {
      ASSERT_TRUE(take());
    }
    const size_t finished = chunks();
    const std::string unfinished = keys_.generation(term_, 1'000'000);
    for (uint64_t i = 0; i < 3; ++i) etcd_.make(keys_.chunk(unfinished, i), "a chunk");
    etcd_.make(keys_.chunk(keys_.generation(1, 1), 0), "an older one");
    ASSERT_TRUE(next_leader());
    size_t before = 0;
    ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) {
      before = chunks();
      world.dump(write);
    }));
    EXPECT_EQ(before, finished) << "what counts is there until the next one does";
    EXPECT_EQ(*next_leader(), world_after(10));
    etcd_.erase(keys_.snapshots(), "p/snap0");
    etcd_.erase(keys_.log(0), keys_.log_end());
  }
}

TEST_F(EtcdJournalTest, AnEtcdThatDoesNotAnswerForAMomentDoesNotSpoilASnapshot) {
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(commit(n));
  const World world = world_after(3);
  etcd_.range_faults = 3;
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { world.dump(write); }));
  EXPECT_EQ(etcd_.range_faults, 0);
  EXPECT_EQ(*next_leader(), world);
}

TEST_F(EtcdJournalTest, FiguresTellTheLogBehindTheSnapshotThatCounts) {
  ASSERT_TRUE(next_leader());
  EXPECT_EQ(journal_->figures().snapshot_bytes, 0u);
  for (uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(commit(n));
  const uint64_t log = journal_->figures().log_bytes;
  EXPECT_GT(log, 0u);
  EXPECT_FALSE(journal_->snapshot([&](const Journal::Write&) { elect(); }));
  EXPECT_EQ(journal_->figures().log_bytes, log) << "one that failed counts for nothing";
  ASSERT_TRUE(begin());
  EXPECT_EQ(journal_->figures().log_bytes, log);
  const World world = world_after(3);
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { world.dump(write); }));
  const JournalFigures after = journal_->figures();
  EXPECT_EQ(after.log_bytes, 0u);
  EXPECT_GT(after.snapshot_bytes, 0u);
  EXPECT_NE(after.snapshot_time, Time{});
  ASSERT_TRUE(next_leader());
  EXPECT_EQ(journal_->figures().snapshot_bytes, after.snapshot_bytes);
  EXPECT_EQ(journal_->figures().snapshot_time, after.snapshot_time);
}

TEST_F(EtcdJournalTest, ASnapshotIsWantedWhenTheLogHasManyKeysAndIsLargeBesideTheLastOne) {
  options_.snapshot_after_keys = 5;
  ASSERT_TRUE(next_leader());
  for (uint64_t n = 1; n <= 4; ++n) ASSERT_TRUE(commit(n));
  EXPECT_FALSE(journal_->wants_snapshot());
  ASSERT_TRUE(commit(5));
  EXPECT_TRUE(journal_->wants_snapshot());
  const World world = world_after(5);
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) { world.dump(write); }));
  EXPECT_FALSE(journal_->wants_snapshot());
}

TEST_F(EtcdJournalTest, ASnapshotIsWantedWhenTheLogHasVeryManyKeysHoweverSmallBesideTheLastOne) {
  options_.snapshot_after_keys = 5;
  options_.snapshot_at_keys = 20;
  ASSERT_TRUE(next_leader());
  ASSERT_TRUE(commit(1));
  const World world = world_after(1);
  ASSERT_TRUE(journal_->snapshot([&](const Journal::Write& write) {
    for (int i = 0; i < 1000; ++i) world.dump(write);  // large
  }));
  for (uint64_t n = 1; n <= 19; ++n) ASSERT_TRUE(commit(2));
  EXPECT_FALSE(journal_->wants_snapshot());
  ASSERT_TRUE(next_leader());
  ASSERT_TRUE(commit(2));
  EXPECT_TRUE(journal_->wants_snapshot()) << "those of the term before count, too";
}

}  // namespace
}  // namespace turnstile::testing
