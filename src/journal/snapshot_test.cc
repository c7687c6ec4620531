// Snapshots: taken while the server works, replayed with the log behind them, never trusted half.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

Journal::Dump dump_of(const World& world) {
  return [&world](const Journal::Write& write) { world.dump(write); };
}

std::vector<std::string> files(const SimulatedDisk& disk, std::string_view prefix) {
  auto names = disk.names();
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

// Steps 1 to `before`, a snapshot, and steps to `after`.
void write_with_snapshot(SimulatedDisk& disk, uint64_t before, uint64_t after) {
  DrivenJournal journal(disk, small_options());
  ASSERT_TRUE(journal.recover());
  journal.start();
  for (uint64_t n = 1; n <= before; ++n) ASSERT_TRUE(journal.commit(n));
  const World world = world_after(before);
  ASSERT_TRUE(journal->snapshot(dump_of(world)));
  for (uint64_t n = before + 1; n <= after; ++n) ASSERT_TRUE(journal.commit(n));
}

TEST(Snapshot, S31_SnapshotAndTheLogBehindItAreTheWholeWorld) {
  SimulatedDisk disk;
  write_with_snapshot(disk, 60, 75);
  EXPECT_EQ(files(disk, "snapshot-"), std::vector<std::string>{"snapshot-00000000000000000061"});
  EXPECT_EQ(files(disk, "log-").front(), "log-00000000000000000061");
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), world_after(75));
  EXPECT_EQ(journal.report.batches, 15u);
  EXPECT_EQ(journal.report.snapshot_records, 8u);
  EXPECT_EQ(journal.report.records, 8u + 30u);
}

TEST(Snapshot, TheClockIsKeptWhenNoLogIsLeft) {
  SimulatedDisk disk;
  write_with_snapshot(disk, 60, 60);
  DrivenJournal journal(disk, small_options());
  ASSERT_TRUE(journal.recover());
  EXPECT_EQ(journal.report.latest, at(60'000));
}

TEST(Snapshot, TheFiguresSayWhatARestartReadsAndHowOldTheSnapshotIs) {
  SimulatedDisk disk;
  uint64_t behind_it = 0, of_snapshot = 0;
  {
    DrivenJournal journal(disk, small_options());
    ASSERT_TRUE(journal.recover());
    journal.start();
    for (uint64_t n = 1; n <= 60; ++n) ASSERT_TRUE(journal.commit(n));
    const uint64_t whole_log = journal->figures().log_bytes;
    EXPECT_GT(whole_log, 0u);
    EXPECT_EQ(journal->figures().snapshot_bytes, 0u);
    ASSERT_TRUE(journal->snapshot(dump_of(world_after(60))));
    EXPECT_EQ(journal->figures().log_bytes, 0u);
    EXPECT_EQ(journal->figures().snapshot_time, at(60'000));
    for (uint64_t n = 61; n <= 75; ++n) ASSERT_TRUE(journal.commit(n));
    behind_it = journal->figures().log_bytes;
    of_snapshot = journal->figures().snapshot_bytes;
    EXPECT_GT(behind_it, 0u);
    EXPECT_LT(behind_it, whole_log);
    EXPECT_GT(of_snapshot, 0u);
  }
  DrivenJournal journal(disk, small_options());
  ASSERT_TRUE(journal.recover());
  EXPECT_EQ(journal->figures().log_bytes, behind_it);
  EXPECT_EQ(journal->figures().snapshot_bytes, of_snapshot);
  EXPECT_EQ(journal->figures().snapshot_time, at(60'000));
}

TEST(Snapshot, AnEmptyWorldHasAValidSnapshot) {
  SimulatedDisk disk;
  write_with_snapshot(disk, 0, 0);
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), World());
}

TEST(Snapshot, OneOfManyPartsIsReadBackWhole) {
  SimulatedDisk disk;
  World world;
  const std::string text(3000, 'x');
  {
    DrivenJournal journal(disk, small_options());
    ASSERT_TRUE(journal.recover());
    journal.start();
    ASSERT_TRUE(journal->snapshot([&](const Journal::Write& write) {
      for (uint64_t n = 1; n <= 5000; ++n) {
        const std::string name = "r" + std::to_string(n);
        write(World::set(name, n, text));
        world.apply(World::set(name, n));
      }
    }));
  }
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), world);
  EXPECT_EQ(journal.report.snapshot_records, 5000u);
}

TEST(Snapshot, S31_ADamagedOneIsRefusedWhenTheLogBeforeItIsGone) {
  SimulatedDisk disk;
  write_with_snapshot(disk, 60, 75);
  const std::string name = files(disk, "snapshot-").front(), good = disk.content(name);
  for (size_t bit = 0; bit < good.size() * 8; bit += 3) {
    std::string bad = good;
    bad[bit / 8] = char(bad[bit / 8] ^ (1 << bit % 8));
    disk.put(name, bad);
    DrivenJournal journal(disk, small_options());
    const auto recovered = journal.recover();
    ASSERT_FALSE(recovered) << bit;
    EXPECT_NE(recovered.error().message.find(name + " at byte "), std::string::npos)
        << recovered.error().message;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    disk.put(name, good.substr(0, size));
    DrivenJournal journal(disk, small_options());
    ASSERT_FALSE(journal.recover()) << size;
  }
}

TEST(Snapshot, S31_ADamagedOneIsPassedOverWhenTheWholeLogIsStillThere) {
  SimulatedDisk disk, before;
  write_with_snapshot(disk, 60, 75);
  write_steps(before, small_options(), 60);
  for (const std::string& name : files(before, "log-")) disk.put(name, before.content(name));
  const std::string name = files(disk, "snapshot-").front();
  disk.put(name, disk.content(name).substr(0, 100));
  DrivenJournal journal(disk, small_options());
  const auto world = journal.recover();
  ASSERT_TRUE(world) << world.error().message;
  EXPECT_EQ(*world, world_after(75));
  EXPECT_EQ(journal.report.batches, 75u);
}

TEST(Snapshot, S31_OneWithFewerRecordsThanItsEndSaysIsRefused) {
  SimulatedDisk disk;
  write_with_snapshot(disk, 60, 75);
  const std::string name = files(disk, "snapshot-").front();
  FrameBuilder end;
  end.add_total(5);
  disk.put(name,
           disk.content(name).substr(0, 32) + std::string(end.seal(FrameKind::snapshot_end, 1, at(0), 32)));
  DrivenJournal journal(disk, small_options());
  const auto recovered = journal.recover();
  ASSERT_FALSE(recovered);
  EXPECT_NE(recovered.error().message.find("0 records and should have 5"), std::string::npos);
}

TEST(Snapshot, S31_OneWithoutTheLogBehindItIsRefused) {
  SimulatedDisk disk;
  write_with_snapshot(disk, 60, 75);
  for (const std::string& name : files(disk, "log-")) disk.erase(name);
  DrivenJournal journal(disk, small_options());
  EXPECT_FALSE(journal.recover());
}

TEST(Snapshot, LeftOversOfAnEarlierCrashAreRemoved) {
  SimulatedDisk disk;
  write_with_snapshot(disk, 60, 75);
  disk.put("log-00000000000000000003", "old and damaged");
  disk.put("snapshot-00000000000000000003", "old and damaged");
  disk.put("snapshot-00000000000000000099.tmp", "unfinished");
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), world_after(75));
  EXPECT_EQ(files(disk, "snapshot-"), std::vector<std::string>{"snapshot-00000000000000000061"});
  EXPECT_EQ(files(disk, "log-").front(), "log-00000000000000000061");
}

TEST(Snapshot, IsWantedWhenTheLogHasGrownAndNotAgainAtOnceAfterIt) {
  SimulatedDisk disk;
  DrivenJournal journal(disk, small_options());
  ASSERT_TRUE(journal.recover());
  journal.start();
  uint64_t n = 0;
  while (!journal->wants_snapshot()) ASSERT_TRUE(journal.commit(++n));
  EXPECT_GT(n, 10u);
  const World world = world_after(n);
  ASSERT_TRUE(journal->snapshot(dump_of(world)));
  EXPECT_FALSE(journal->wants_snapshot());
  while (!journal->wants_snapshot()) ASSERT_TRUE(journal.commit(++n));
}

TEST(Snapshot, WhatTheLogHadGrownByBeforeARestartCounts) {
  SimulatedDisk disk;
  write_steps(disk, small_options(), 200);
  DrivenJournal journal(disk, small_options());
  ASSERT_TRUE(journal.recover());
  EXPECT_TRUE(journal->wants_snapshot());
}

TEST(Snapshot, AFullDiskFailsTheSnapshotButNotTheLog) {
  SimulatedDisk disk;
  {
    DrivenJournal journal(disk, small_options());
    ASSERT_TRUE(journal.recover());
    journal.start();
    for (uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(journal.commit(n));
    disk.set_fault([](DiskCall call, const std::string& name, uint64_t) {
      return name.ends_with(".tmp") && call == DiskCall::write;
    });
    const World world = world_after(20);
    EXPECT_FALSE(journal->snapshot(dump_of(world)));
    for (uint64_t n = 21; n <= 30; ++n) ASSERT_TRUE(journal.commit(n));
    EXPECT_TRUE(files(disk, "snapshot-").empty());
  }
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), world_after(30));
}

TEST(Snapshot, OneThatIsGivenUpLeavesNothingBehindAndTheLogGoesOn) {
  SimulatedDisk disk;
  {
    DrivenJournal journal(disk, small_options());
    ASSERT_TRUE(journal.recover());
    journal.start();
    for (uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(journal.commit(n));
    std::stop_source stop;
    const World world = world_after(20);
    const auto dump = [&](const Journal::Write& write) {
      world.dump(write);
      stop.request_stop();
    };
    EXPECT_FALSE(journal->snapshot(dump, stop.get_token()));
    for (uint64_t n = 21; n <= 30; ++n) ASSERT_TRUE(journal.commit(n));
    EXPECT_TRUE(files(disk, "snapshot-").empty());
  }
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), world_after(30));
}

TEST(Snapshot, S32_AnUnknownOutcomeOfNamingItEndsTheJournal) {
  for (const DiskCall which : {DiskCall::rename, DiskCall::sync_directory}) {
    SimulatedDisk disk;
    DrivenJournal journal(disk, small_options());
    ASSERT_TRUE(journal.recover());
    journal.start();
    ASSERT_TRUE(journal.commit(1));
    bool renaming = false;
    disk.set_fault([&](DiskCall call, const std::string&, uint64_t) {
      renaming |= call == DiskCall::rename;
      return renaming && call == which;
    });
    const World world = world_after(1);
    EXPECT_FALSE(journal->snapshot(dump_of(world)));
    EXPECT_FALSE(journal.commit(2));
    EXPECT_EQ(journal.errors().size(), 1u);
    EXPECT_EQ(files(disk, "log-").size(), 2u);  // nothing was deleted
  }
}

// A snapshot must not get its name before the steps that its dump has seen are durable.
TEST(Snapshot, S31_TellsNothingThatTheLogDoesNotKnowYet) {
  SimulatedDisk disk;
  {
    DrivenJournal journal(disk, small_options());
    ASSERT_TRUE(journal.recover());
    journal.start();
    for (uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(journal.commit(n));
    const auto taken = journal->snapshot([&](const Journal::Write& write) {
      disk.set_fault([](DiskCall call, const std::string& name, uint64_t) {
        return name.starts_with("log-") && call == DiskCall::sync;
      });
      journal->append(step_records(21), at(21'000));
      world_after(21).dump(write);
    });
    EXPECT_FALSE(taken);
  }
  EXPECT_TRUE(disk.content("snapshot-00000000000000000021").empty());
  disk.crash(0);
  DrivenJournal journal(disk, small_options());
  const auto world = journal.recover();
  ASSERT_TRUE(world) << world.error().message;
  EXPECT_EQ(*world, world_after((*world)["last"]));
}

// Many threads append under one mutex, as a server's do under a resource's, while snapshots are taken. (Also
// for the thread sanitizer.)
TEST(Snapshot, S31_TakenWhileManyThreadsAppendLosesNothing) {
  SimulatedDisk disk;
  Mutex mutex;
  World world;
  uint64_t steps = 0;
  {
    DrivenJournal journal(disk, {.segment_bytes = 16384,
                                 .zero_ahead_bytes = 4096,
                                 .snapshot_after_bytes = 32768,
                                 .most_pending_bytes = 1 << 20});
    ASSERT_TRUE(journal.recover());
    journal.start();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) {
          uint64_t sequence;
          {
            Locked lock(mutex);
            const auto records = step_records(++steps);
            for (const Record& record : records) world.apply(record);
            sequence = journal->append(records, at(int64_t(steps)));
          }
          if (i % 50 == 0) {
            EXPECT_TRUE(journal.wait(sequence));
          }
        }
      });
    }
    for (int i = 0; i < 10; ++i) {
      const auto taken = journal->snapshot([&](const Journal::Write& write) {
        for (const char* name : {"g", "f", "e", "d", "c", "b", "a", "last"}) {  // each fact at another moment
          Locked lock(mutex);
          if (const uint64_t number = world[name]) write(World::set(name, number));
        }
      });
      EXPECT_TRUE(taken);
    }
    for (auto& thread : threads) thread.join();
  }
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), world);
}

}  // namespace
}  // namespace turnstile::testing
