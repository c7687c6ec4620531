// The judgement at the end of a log, case by case: end, torn or damaged.
#include "journal/tail.h"

#include <gtest/gtest.h>

#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

std::string frame(uint64_t number, uint64_t offset, std::string_view text) {
  FrameBuilder batch;
  batch.add(World::set("r", number, text));
  return std::string(batch.seal(FrameKind::batch, number, at(0), offset));
}
TailVerdict verdict(std::string_view bytes, uint64_t offset = 0, uint64_t next_batch = 1) {
  return judge_tail(bytes, offset, next_batch).verdict;
}

TEST(Tail, NothingOrZerosAreTheEnd) {
  EXPECT_EQ(verdict(""), TailVerdict::end);
  EXPECT_EQ(verdict(std::string(5000, '\0')), TailVerdict::end);
}

TEST(Tail, AMissingSectorOfTheLastBatchIsATornWriteWhicheverItIs) {
  for (const uint64_t offset : {0u, 32u, 470u, 511u, 456u, 457u}) {
    const std::string whole = frame(1, offset, std::string(2000, 'x'));
    for (uint64_t sector = offset / kSectorBytes; sector * kSectorBytes < offset + whole.size(); ++sector) {
      std::string torn = whole;
      for (size_t i = 0; i < torn.size(); ++i)
        if ((offset + i) / kSectorBytes == sector) torn[i] = 0;
      EXPECT_EQ(verdict(torn + std::string(1000, '\0'), offset), TailVerdict::torn)
          << offset << " " << sector;
    }
  }
}

TEST(Tail, ACompleteBatchWithAWrongByteIsDamagedNotTorn) {
  std::string whole = frame(1, 32, std::string(2000, 'x'));
  for (size_t i = 0; i < whole.size(); ++i) {
    whole[i] = char(whole[i] ^ 0x10);
    EXPECT_EQ(verdict(whole, 32), TailVerdict::damaged) << i;
    EXPECT_EQ(verdict(whole + std::string(300, '\0'), 32), TailVerdict::damaged) << i;
    whole[i] = char(whole[i] ^ 0x10);
  }
}

TEST(Tail, ZerosOfARecordsOwnDoNotMakeDamageLookTorn) {
  std::string text(3000, '\0');
  std::string whole = frame(1, 32, text);
  whole[60] = char(whole[60] ^ 1);
  EXPECT_EQ(verdict(whole, 32), TailVerdict::damaged);
  // A sector with a single bit, and that bit flipped.
  text[1500] = 1;
  whole = frame(1, 32, text);
  whole[whole.find('\x01', 700)] = 0;
  EXPECT_EQ(verdict(whole, 32), TailVerdict::damaged);
}

TEST(Tail, ABadBatchWithAValidOneBehindItIsDamaged) {
  const std::string first = frame(1, 0, "x"), second = frame(2, first.size(), "y");
  EXPECT_EQ(verdict(std::string(first.size(), '\0') + second), TailVerdict::damaged);
  EXPECT_EQ(verdict(first.substr(0, first.size() / 2) + std::string(600, '\0') + second),
            TailVerdict::damaged);
}

TEST(Tail, ATornBatchWhoseTextLooksLikeAFrameIsStillTorn) {
  const std::string inner = frame(99, 0, "inner");
  const std::string whole = frame(1, 0, inner + std::string(2000, 'x'));
  EXPECT_EQ(verdict(whole.substr(0, whole.size() - 700)), TailVerdict::torn);
}

}  // namespace
}  // namespace turnstile::testing
