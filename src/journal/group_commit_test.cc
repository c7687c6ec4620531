// Group commit without a disk: what is written together, what is durable when, and what a failure stops.
#include "journal/group_commit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

// A store that holds its first write until it is let go.
class HeldStore final : public BatchStore {
 public:
  Result<void> write(FrameBuilder& batch, Time time) override {
    sizes.push_back(batch.records());
    times.push_back(time);
    if (sizes.size() == 1) {
      entered.count_down();
      let_go.wait();
    }
    if (sizes.size() == fail_at) return fail("disk on fire");
    return {};
  }

  std::latch entered{1}, let_go{1};
  size_t fail_at = 0;
  std::vector<uint32_t> sizes;
  std::vector<Time> times;
};

const Record kRecord = World::set("r", 1);
const std::vector<Record> kOne = {kRecord}, kThree = {kRecord, kRecord, kRecord};

// Everything appended before is durable, or never will be.
bool flush(GroupCommit& commit) {
  return commit.between_batches([]() -> Result<void> { return {}; }).has_value();
}

TEST(GroupCommit, EverythingPendingBecomesOneBatch) {
  HeldStore store;
  std::vector<uint64_t> told;
  GroupCommit commit(store, 1 << 20);
  commit.start(at(0), [&](uint64_t sequence) { told.push_back(sequence); }, [](const Error&) { FAIL(); });
  EXPECT_EQ(commit.append(kOne, at(1)), 1u);
  store.entered.wait();
  for (uint64_t n = 2; n <= 100; ++n) EXPECT_EQ(commit.append(kThree, at(int64_t(n))), n);
  EXPECT_EQ(commit.durable(), 0u);
  store.let_go.count_down();
  commit.stop();
  EXPECT_EQ(store.sizes, (std::vector<uint32_t>{1, 297}));
  EXPECT_EQ(store.times, (std::vector<Time>{at(1), at(100)}));
  EXPECT_EQ(told, (std::vector<uint64_t>{1, 100}));
  EXPECT_EQ(commit.durable(), 100u);
}

TEST(GroupCommit, AFullBatchTakesNoMoreStepsAndNoneIsSplit) {
  HeldStore store;
  std::vector<uint64_t> told;
  GroupCommit commit(store, 1 << 20, GroupCommit::Drive::by_thread, 100);
  commit.start(at(0), [&](uint64_t sequence) { told.push_back(sequence); }, [](const Error&) { FAIL(); });
  commit.append(kOne, at(1));
  store.entered.wait();
  const std::vector<Record> many(50, kRecord);
  commit.append(many, at(2), 7);
  commit.append(kOne, at(3), 8);
  commit.append(many, at(4));
  store.let_go.count_down();
  ASSERT_TRUE(flush(commit)) << "work waits for all that was full before it, too";
  EXPECT_EQ(store.sizes, (std::vector<uint32_t>{1, 51, 52})) << "each with its mark";
  EXPECT_EQ(store.times, (std::vector<Time>{at(1), at(2), at(4)}));
  EXPECT_EQ(told, (std::vector<uint64_t>{1, 2, 4}));
}

TEST(GroupCommit, S42_ABarrierIsPassedOnlyByAWriteThatBeginsAfterIt) {
  HeldStore store;
  GroupCommit commit(store, 1 << 20);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  commit.append(kOne, at(1));
  store.entered.wait();
  const uint64_t barrier = commit.barrier();
  EXPECT_EQ(barrier, 2u) << "not the batch that is being written";
  EXPECT_EQ(commit.barrier(), barrier) << "one write is enough for all that wait";
  store.let_go.count_down();
  ASSERT_TRUE(flush(commit));
  EXPECT_EQ(commit.durable(), barrier);
  EXPECT_EQ(store.sizes, (std::vector<uint32_t>{1, 0}));
}

TEST(GroupCommit, S28_ABatchEndsWithOneMarkOfTheLatestEventHoweverManyStepsItHas) {
  HeldStore store;
  GroupCommit commit(store, 1 << 20);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  commit.append(kOne, at(1), 7);
  store.entered.wait();
  for (uint64_t n = 2; n <= 100; ++n) commit.append(kOne, at(1), 7 + n);
  store.let_go.count_down();
  ASSERT_TRUE(flush(commit));
  commit.append(kOne, at(1));
  commit.stop();
  EXPECT_EQ(store.sizes, (std::vector<uint32_t>{2, 100, 1})) << "nothing new to mark in the last";
}

TEST(GroupCommit, S32_AfterAFailureNothingBecomesDurableAndNothingIsTriedAgain) {
  HeldStore store;
  store.fail_at = 1;
  int failures = 0;
  GroupCommit commit(store, 1 << 20);
  commit.start(
      at(0), [](uint64_t) { FAIL(); },
      [&](const Error& error) {
        ++failures;
        EXPECT_EQ(error.message, "disk on fire");
      });
  commit.append(kOne, at(1));
  store.entered.wait();
  commit.append(kOne, at(2));
  store.let_go.count_down();
  EXPECT_FALSE(flush(commit));
  EXPECT_EQ(commit.append(kOne, at(3)), 3u);
  EXPECT_FALSE(flush(commit));
  commit.stop();
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(commit.durable(), 0u);
  EXPECT_EQ(store.sizes.size(), 1u);
}

TEST(GroupCommit, TooMuchPendingIsToldAndNeverBlocks) {
  HeldStore store;
  GroupCommit commit(store, 1000);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  commit.append(kOne, at(1));
  store.entered.wait();
  EXPECT_FALSE(commit.overloaded());
  for (int i = 0; i < 100; ++i) commit.append(kThree, at(2));
  EXPECT_TRUE(commit.overloaded());
  store.let_go.count_down();
  ASSERT_TRUE(flush(commit));
  EXPECT_FALSE(commit.overloaded());
}

TEST(GroupCommit, AStepWithoutRecordsWaitsForThoseBeforeItAndWritesNothing) {
  HeldStore store;
  store.let_go.count_down();
  GroupCommit commit(store, 1000);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  commit.append(kOne, at(1));
  ASSERT_TRUE(flush(commit));
  commit.append({}, at(2));
  ASSERT_TRUE(flush(commit));
  EXPECT_EQ(commit.durable(), 2u);
  EXPECT_EQ(store.sizes.size(), 1u);
}

TEST(GroupCommit, S31_WhatIsAppendedDuringTheStopIsDurableOnlyIfItWasWritten) {
  HeldStore store;
  GroupCommit commit(store, 1 << 20);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  commit.append(kOne, at(1));
  store.entered.wait();
  std::thread stops([&] { commit.stop(); });
  for (int i = 0; i < 20'000; ++i) commit.append(kOne, at(2));
  store.let_go.count_down();
  stops.join();
  EXPECT_EQ(commit.durable(), std::accumulate(store.sizes.begin(), store.sizes.end(), uint64_t(0)));
}

TEST(GroupCommit, WorkWaitsForStepsThatWerePendingWhenItCame) {
  HeldStore store;
  GroupCommit commit(store, 1 << 20);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  commit.append(kOne, at(1));
  store.entered.wait();
  commit.append(kOne, at(2));  // pending behind the batch that is being written
  std::thread releases([&] { store.let_go.count_down(); });
  uint64_t durable_at_work = 0;
  ASSERT_TRUE(commit.between_batches([&]() -> Result<void> {
    durable_at_work = commit.durable();
    return {};
  }));
  releases.join();
  EXPECT_EQ(durable_at_work, 2u);
}

// Not each time: a machine that stalls for five milliseconds spoils a try.
TEST(GroupCommit, WhoeverIsAnsweredTogetherAndAsksAgainIsWrittenTogether) {
  class SlowStore final : public BatchStore {
   public:
    Result<void> write(FrameBuilder& batch, Time) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(6));
      last_size = batch.records();
      return {};
    }
    std::atomic<uint32_t> last_size = 0;
  } store;
  GroupCommit commit(store, 1 << 20);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  int together = 0;
  for (int i = 0; i < 20 && together == 0; ++i) {
    for (int n = 0; n < 4; ++n) commit.append(kThree, at(1));
    ASSERT_TRUE(flush(commit));  // behind the first of the four, which had a batch of its own
    uint64_t last = 0;
    for (int n = 0; n < 3; ++n) {
      last = commit.append(kOne, at(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    while (commit.durable() < last) std::this_thread::yield();
    together += store.last_size == 3;
  }
  EXPECT_GT(together, 0);
}

TEST(GroupCommit, NobodyWaitsForThoseWhoDoNotComeBack) {
  HeldStore store;
  store.let_go.count_down();
  GroupCommit commit(store, 1 << 20);
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  for (int i = 0; i < 100; ++i) commit.append(kThree, at(1));
  const uint64_t last = commit.append(kThree, at(1));
  while (commit.durable() < last) std::this_thread::yield();
  const uint64_t alone = commit.append(kOne, at(2));
  while (commit.durable() < alone) std::this_thread::yield();
  EXPECT_EQ(store.sizes.back(), 1u);
  commit.stop();
}

TEST(GroupCommit, ABatchIsNeverStampedEarlierThanTheOneBefore) {
  HeldStore store;
  store.let_go.count_down();
  GroupCommit commit(store, 1000);
  commit.start(at(50), [](uint64_t) {}, [](const Error&) { FAIL(); });
  for (const int64_t now : {40, 70, 60}) {
    commit.append(kOne, at(now));
    ASSERT_TRUE(flush(commit));
  }
  EXPECT_EQ(store.times, (std::vector<Time>{at(50), at(70), at(70)}));
}

TEST(GroupCommit, WhatIsAppendedBeforeTheStartIsWrittenAndAfterTheStopIsNot) {
  HeldStore store;
  store.let_go.count_down();
  GroupCommit commit(store, 1000);
  commit.append(kThree, at(1));
  commit.start(at(0), [](uint64_t) {}, [](const Error&) { FAIL(); });
  commit.append(kOne, at(2));
  commit.stop();
  EXPECT_EQ(commit.append(kOne, at(3)), 3u);
  EXPECT_EQ(commit.durable(), 2u);
  EXPECT_FALSE(flush(commit));
}

}  // namespace
}  // namespace turnstile::testing
