// The file journal as a whole on a simulated disk: append and recover, rotation, failures.
#include "journal/file_journal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

size_t count_of(const SimulatedDisk& disk, std::string_view prefix) {
  const auto names = disk.names();
  return size_t(
      std::ranges::count_if(names, [&](const std::string& name) { return name.starts_with(prefix); }));
}

TEST(FileJournal, AnEmptyDirectoryIsAFreshStart) {
  SimulatedDisk disk;
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), World());
  EXPECT_EQ(journal.report.records, 0u);
  EXPECT_EQ(journal.report.latest, Time{});
}

TEST(FileJournal, S31_WhatWasDurableIsRecoveredInOrder) {
  SimulatedDisk disk;
  write_steps(disk, one_segment(), 50);
  DrivenJournal journal(disk, one_segment());
  EXPECT_EQ(*journal.recover(), world_after(50));
  EXPECT_EQ(journal.report.records, 100u);
  EXPECT_EQ(journal.report.batches, 50u);
  EXPECT_EQ(journal.report.latest, at(50'000));
}

TEST(FileJournal, ZerosAreWrittenAheadSoThatFewBatchesMakeTheFileLarger) {
  SimulatedDisk disk;
  DrivenJournal journal(disk, one_segment());
  ASSERT_TRUE(journal.recover());
  journal.start();
  int grown = 0;
  for (uint64_t n = 1; n <= 50; ++n) {
    const size_t before = disk.content(kFirstLog).size();
    ASSERT_TRUE(journal.commit(n));
    if (disk.content(kFirstLog).size() != before) ++grown;
    EXPECT_EQ(disk.content(kFirstLog).size() % one_segment().zero_ahead_bytes, 0u);
  }
  EXPECT_EQ(grown, 3);
}

TEST(FileJournal, TheLogIsSplitIntoSegmentsAndReadBackOverAllOfThem) {
  SimulatedDisk disk;
  write_steps(disk, small_options(), 200);
  EXPECT_GT(count_of(disk, "log-"), 5u);
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ(*journal.recover(), world_after(200));
  EXPECT_EQ(journal.report.batches, 200u);
}

TEST(FileJournal, ABatchLargerThanASegmentIsWrittenWhole) {
  SimulatedDisk disk;
  const std::string text(20'000, 'x');
  {
    DrivenJournal journal(disk, small_options());
    ASSERT_TRUE(journal.recover());
    journal.start();
    for (uint64_t n = 1; n <= 3; ++n) {
      const Record record = World::set("large", n, text);
      ASSERT_TRUE(journal.wait(journal->append({&record, 1}, at(0))));
    }
  }
  DrivenJournal journal(disk, small_options());
  EXPECT_EQ((*journal.recover())["large"], 3u);
}

TEST(FileJournal, S31_AMissingSegmentInTheMiddleIsRefused) {
  SimulatedDisk disk;
  write_steps(disk, small_options(), 200);
  std::vector<std::string> logs = disk.names();
  disk.erase(logs[2]);
  DrivenJournal journal(disk, small_options());
  const auto recovered = journal.recover();
  ASSERT_FALSE(recovered);
  EXPECT_NE(recovered.error().message.find(logs[3]), std::string::npos) << recovered.error().message;
  EXPECT_NE(recovered.error().message.find(logs[1]), std::string::npos) << recovered.error().message;
}

TEST(FileJournal, S31_AMissingFirstSegmentIsRefused) {
  SimulatedDisk disk;
  write_steps(disk, small_options(), 200);
  disk.erase(kFirstLog);
  DrivenJournal journal(disk, small_options());
  const auto recovered = journal.recover();
  ASSERT_FALSE(recovered);
  EXPECT_NE(recovered.error().message.find(kFirstLog), std::string::npos);
}

TEST(FileJournal, S31_ATornEndOfASegmentThatIsNotTheLastIsRefused) {
  SimulatedDisk disk;
  write_steps(disk, small_options(), 200);
  const std::string content = disk.content(kFirstLog);
  disk.put(kFirstLog, content.substr(0, frame_offsets(content).back() - 3));
  DrivenJournal journal(disk, small_options());
  EXPECT_FALSE(journal.recover());
}

TEST(FileJournal, ARenamedSegmentIsRefused) {
  SimulatedDisk disk;
  disk.put(kFirstLog, "");
  write_steps(disk, one_segment(), 3);
  disk.put("log-00000000000000000004", disk.content(kFirstLog));
  DrivenJournal journal(disk, one_segment());
  const auto recovered = journal.recover();
  ASSERT_FALSE(recovered);
  EXPECT_NE(recovered.error().message.find("renamed"), std::string::npos) << recovered.error().message;
}

TEST(FileJournal, FilesOfOtherNamesAreLeftAlone) {
  SimulatedDisk disk;
  for (const char* name : {"log-1", "log-0000000000000000000x", "lost+found", "snapshot-", "LOCK"})
    disk.put(name, "?");
  write_steps(disk, one_segment(), 3);
  DrivenJournal journal(disk, one_segment());
  EXPECT_EQ(*journal.recover(), world_after(3));
  EXPECT_EQ(disk.content("log-1"), "?");
}

// A call of each kind fails once, and would succeed if it were tried again.
class S32_FailedCall : public ::testing::TestWithParam<DiskCall> {};
TEST_P(S32_FailedCall, MakesNothingDurableAfterItEvenIfTheDiskRecovers) {
  SimulatedDisk disk;
  DrivenJournal journal(disk, small_options());
  ASSERT_TRUE(journal.recover());
  journal.start();
  uint64_t acknowledged = 0;
  for (; acknowledged < 10; ++acknowledged) ASSERT_TRUE(journal.commit(acknowledged + 1));
  bool failed = false;
  disk.set_fault([&](DiskCall call, const std::string&, uint64_t) {
    return call == GetParam() && !std::exchange(failed, true);
  });
  // Until a segment is full, for those calls that only a new one makes.
  while (acknowledged < 200 && journal.commit(acknowledged + 1)) ++acknowledged;
  EXPECT_EQ(journal->durable(), acknowledged);
  const uint64_t calls = disk.calls();
  const uint64_t sequence = journal->append(step_records(1), at(0));
  EXPECT_EQ(sequence, acknowledged + 2);
  EXPECT_FALSE(journal->snapshot([](const Journal::Write&) { FAIL(); }));
  journal->stop();
  EXPECT_EQ(journal->durable(), acknowledged);
  EXPECT_EQ(disk.calls(), calls) << "something was tried after the failure";
  ASSERT_EQ(journal.errors().size(), 1u);
  EXPECT_NE(journal.errors()[0].find("No space left"), std::string::npos);
}
std::string call_name(const ::testing::TestParamInfo<DiskCall>& call) {
  constexpr const char* kNames[] = {"Create", "Write",  "Truncate",     "Sync",
                                    "Rename", "Remove", "SyncDirectory"};
  return kNames[size_t(call.param)];
}
INSTANTIATE_TEST_SUITE_P(FileJournal, S32_FailedCall,
                         ::testing::Values(DiskCall::write, DiskCall::sync, DiskCall::create,
                                           DiskCall::sync_directory),
                         call_name);

TEST(FileJournal, S31_ARecoveredBatchIsSyncedBeforeAnybodyCanBeToldOfIt) {
  SimulatedDisk disk;
  {
    DrivenJournal journal(disk, one_segment());
    ASSERT_TRUE(journal.recover());
    journal.start();
    ASSERT_TRUE(journal.commit(1));
    disk.set_fault([](DiskCall call, const std::string&, uint64_t) { return call == DiskCall::sync; });
    ASSERT_FALSE(journal.commit(2));
  }
  disk.set_fault(nullptr);
  World told;
  {  // The process has ended, the machine has not: step 2 is in the cache and is recovered.
    DrivenJournal journal(disk, one_segment());
    told = *journal.recover();
    ASSERT_EQ(told, world_after(2));
  }
  disk.crash_losing_all_unsynced();
  DrivenJournal journal(disk, one_segment());
  EXPECT_EQ(*journal.recover(), told);
}

TEST(FileJournal, ARecordOfAnUnknownKindIsRefusedAlthoughItsChecksumIsRight) {
  SimulatedDisk disk;
  write_steps(disk, one_segment(), 1);
  FrameBuilder batch;
  Record record = World::set("r", 2);
  record.kind = RecordKind(200);
  batch.add(record);
  const std::string content = disk.content(kFirstLog);
  const uint64_t end = frame_offsets(content).back();
  const Outcome outcome =
      recover_log(content.substr(0, end) + std::string(batch.seal(FrameKind::batch, 2, at(0), end)));
  ASSERT_FALSE(outcome.world);
  EXPECT_NE(outcome.error.find("version of the program"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace turnstile::testing
