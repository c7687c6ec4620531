// Frames: what is sealed can be parsed, and no single flipped bit goes unnoticed.
#include "journal/batch.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

Record record_with(std::string_view text) {
  Record record;
  record.kind = RecordKind::completion_set;
  record.text = text;
  return record;
}

TEST(Batch, TheHeaderComesBack) {
  FrameBuilder batch;
  batch.add(record_with("one"));
  batch.add(record_with("two"));
  const std::string frame(batch.seal(FrameKind::batch, 42, Time(Duration(-5)), 1000));
  const auto header = parse_frame_header(frame);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->number, 42u);
  EXPECT_EQ(header->time, Time(Duration(-5)));
  EXPECT_EQ(header->records, 2u);
  EXPECT_EQ(frame_bytes(*header), frame.size());
  EXPECT_TRUE(payload_is_sound(*header, frame));
}

TEST(Batch, EveryFlippedBitIsNoticed) {
  FrameBuilder batch;
  batch.add(record_with(std::string(100, 'x')));
  std::string frame(batch.seal(FrameKind::batch, 1, Time{}, 0));
  for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
    frame[bit / 8] = char(frame[bit / 8] ^ (1 << bit % 8));
    const auto header = parse_frame_header(frame);
    EXPECT_FALSE(header && frame_bytes(*header) == frame.size() && payload_is_sound(*header, frame)) << bit;
    frame[bit / 8] = char(frame[bit / 8] ^ (1 << bit % 8));
  }
}

TEST(Batch, NoPartOfASectorOfAFrameIsBlankWhereverItBegins) {
  for (uint64_t offset = 0; offset < kSectorBytes; ++offset) {
    FrameBuilder batch;
    batch.add(record_with(std::string(1500, 'x')));
    EXPECT_EQ(blank_sectors(batch.seal(FrameKind::batch, 1, Time{}, offset), offset, 1), 0u) << offset;
  }
}

TEST(Batch, SectorsOfZerosInARecordAreCounted) {
  FrameBuilder batch;
  batch.add(record_with(std::string(4 * kSectorBytes, '\0')));
  const auto header = parse_frame_header(batch.seal(FrameKind::batch, 1, Time{}, 32));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->blank_sectors, 3u);
}

TEST(Batch, ABuilderIsReusedAndGivesBackWhatABurstTook) {
  FrameBuilder batch;
  for (int i = 0; i < 3; ++i) {
    batch.clear();
    EXPECT_EQ(batch.records(), 0u);
    EXPECT_EQ(batch.payload_size(), 0u);
    batch.add(record_with("again"));
    EXPECT_TRUE(parse_frame_header(batch.seal(FrameKind::batch, 1, Time{}, 0)));
  }
}

}  // namespace
}  // namespace turnstile
