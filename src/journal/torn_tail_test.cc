// Every way in which the end of a log can be cut or flipped (testing.md, ring "journal"): recovery finds
// everything acknowledged, or refuses to start.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

constexpr uint64_t kSteps = 50;

// 50 batches, as the disk has them after a crash: zeros behind the last.
const std::string& script() {
  static const std::string content = [] {
    SimulatedDisk disk;
    write_steps(disk, one_segment(), kSteps);
    return disk.content(kFirstLog);
  }();
  return content;
}
const std::vector<uint64_t>& offsets() {
  static const std::vector<uint64_t> offsets = frame_offsets(script());
  return offsets;
}
// How many batches end at or before this byte: those may have been acknowledged.
uint64_t batches_before(uint64_t byte) {
  uint64_t count = 0;
  while (count < kSteps && offsets()[count + 1] <= byte) ++count;
  return count;
}

void expect_prefix(const Outcome& outcome, uint64_t cut) {
  const uint64_t whole = batches_before(cut);
  ASSERT_TRUE(outcome.world) << "cut at " << cut << ": " << outcome.error;
  EXPECT_EQ(*outcome.world, world_after(whole)) << cut;
  EXPECT_EQ(outcome.report.batches, whole) << cut;
}

TEST(FileJournal, S31_TornTailIsCutAndNothingAcknowledgedIsLost) {
  ASSERT_EQ(offsets().size(), kSteps + 1);
  for (uint64_t cut = offsets()[kSteps - 3]; cut <= offsets()[kSteps]; ++cut) {
    const Outcome outcome = recover_log(script().substr(0, cut));
    expect_prefix(outcome, cut);
    const bool torn = cut != offsets()[batches_before(cut)];
    EXPECT_EQ(outcome.report.cut_torn_tail, torn) << cut;
    if (torn) {
      EXPECT_EQ(outcome.report.cut_at, offsets()[batches_before(cut)]);
      EXPECT_EQ(outcome.report.cut_file, "disk/" + kFirstLog);
    }
  }
}

// Sectors reach the disk whole, so a batch that was written up to a sector's end has zeros behind it.
TEST(FileJournal, S31_TornTailOverZerosIsCutAtEverySectorBoundary) {
  for (uint64_t cut = offsets()[kSteps - 3]; cut <= offsets()[kSteps]; ++cut) {
    if (cut % kSectorBytes != 0) continue;
    expect_prefix(recover_log(script().substr(0, cut) + std::string(script().size() - cut, '\0')), cut);
  }
}

TEST(FileJournal, S31_AnyPrefixOverZerosIsRecoveredOrRefused) {
  for (uint64_t cut = offsets()[kSteps - 3]; cut <= offsets()[kSteps]; ++cut) {
    const Outcome outcome = recover_log(script().substr(0, cut) + std::string(script().size() - cut, '\0'));
    if (outcome.world) expect_prefix(outcome, cut);
  }
}

TEST(FileJournal, S31_AnySubsetOfTheLastBatchesSectorsIsRecovered) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string content = script();
    bool lost = false;
    for (uint64_t byte = offsets()[kSteps - 1]; byte < offsets()[kSteps];) {
      const uint64_t end = std::min(offsets()[kSteps], (byte / kSectorBytes + 1) * kSectorBytes);
      if (random() % 2) {
        content.replace(byte, end - byte, end - byte, '\0');
        lost = true;
      }
      byte = end;
    }
    expect_prefix(recover_log(content), lost ? offsets()[kSteps - 1] : offsets()[kSteps]);
  }
}

TEST(FileJournal, S31_EveryFlippedBitOfTheLastTwoBatchesIsRefusedNamingTheBatch) {
  for (const bool zeros_behind : {true, false}) {
    std::string content = zeros_behind ? script() : script().substr(0, offsets()[kSteps]);
    for (uint64_t bit = offsets()[kSteps - 2] * 8; bit < offsets()[kSteps] * 8; ++bit) {
      content[bit / 8] = char(content[bit / 8] ^ (1 << bit % 8));
      const Outcome outcome = recover_log(content);
      content[bit / 8] = char(content[bit / 8] ^ (1 << bit % 8));
      ASSERT_FALSE(outcome.world) << "bit " << bit << " was dropped silently";
      const uint64_t begin = offsets()[batches_before(bit / 8)];
      ASSERT_NE(outcome.error.find(fmt::format("{} at byte {}:", kFirstLog, begin)), std::string::npos)
          << outcome.error;
    }
  }
}

TEST(FileJournal, S31_DamageInTheMiddleIsRefusedNamingFileAndByte) {
  for (uint64_t batch = 0; batch < kSteps; batch += 7) {
    for (const uint64_t inside : {uint64_t(0), uint64_t(20), kFrameHeaderBytes + 3}) {
      std::string content = script();
      char& byte = content[offsets()[batch] + inside];
      byte = char(byte ^ 4);
      const Outcome outcome = recover_log(content);
      ASSERT_FALSE(outcome.world);
      EXPECT_NE(outcome.error.find(fmt::format("disk/{} at byte {}:", kFirstLog, offsets()[batch])),
                std::string::npos)
          << outcome.error;
    }
  }
}

TEST(FileJournal, S31_ZeroedBatchesInTheMiddleAreRefused) {
  std::string content = script();
  content.replace(offsets()[10], offsets()[12] - offsets()[10], offsets()[12] - offsets()[10], '\0');
  EXPECT_FALSE(recover_log(content).world);
}

TEST(FileJournal, S31_AMissingBatchIsRefused) {
  std::string content = script();
  content.erase(offsets()[10], offsets()[11] - offsets()[10]);
  const Outcome outcome = recover_log(content);
  ASSERT_FALSE(outcome.world);
  EXPECT_NE(outcome.error.find("batch 12 is here although 11 is next"), std::string::npos) << outcome.error;
}

TEST(FileJournal, S31_ABadFileHeaderIsRefusedUnlessTheFileIsEmpty) {
  for (uint64_t bit = 0; bit < 32 * 8; ++bit) {
    std::string content = script();
    content[bit / 8] = char(content[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(recover_log(content).world) << bit;
    EXPECT_TRUE(recover_log(content.substr(0, 32)).world) << bit;
  }
  for (uint64_t size = 0; size < 32; ++size) EXPECT_TRUE(recover_log(script().substr(0, size)).world) << size;
}

TEST(FileJournal, S31_ACutJournalGoesOnBehindTheCut) {
  SimulatedDisk disk;
  disk.put(kFirstLog, script().substr(0, offsets()[kSteps] - 5));
  {
    DrivenJournal journal(disk, one_segment());
    ASSERT_EQ(*journal.recover(), world_after(kSteps - 1));
    journal.start();
    for (uint64_t n = kSteps; n <= kSteps + 5; ++n) ASSERT_TRUE(journal.commit(n));
  }
  DrivenJournal again(disk, one_segment());
  EXPECT_EQ(*again.recover(), world_after(kSteps + 5));
  EXPECT_FALSE(again.report.cut_torn_tail);
}

// Without zeros ahead nothing else would cover the rest of the torn batch.
TEST(FileJournal, S31_NothingOfATornBatchIsLeftBehindAShorterOne) {
  FileJournalOptions plain = one_segment();
  plain.zero_ahead_bytes = 0;
  SimulatedDisk disk;
  disk.put(kFirstLog, script().substr(0, offsets()[kSteps] - 5));
  World expected = world_after(kSteps - 1);
  {
    DrivenJournal journal(disk, plain);
    ASSERT_EQ(*journal.recover(), expected);
    journal.start();
    ASSERT_TRUE(journal.commit(kSteps + 1));
    for (const Record& record : step_records(kSteps + 1)) expected.apply(record);
  }
  EXPECT_EQ(disk.content(kFirstLog).size(), frame_offsets(disk.content(kFirstLog)).back());
  DrivenJournal again(disk, plain);
  EXPECT_EQ(*again.recover(), expected);
}

}  // namespace
}  // namespace turnstile::testing
