// The codec: every field of every kind survives, and no bytes make the decoder read beyond them.
#include "journal/record_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace turnstile {
namespace {

bool same(const Record& a, const Record& b) {
  return a.kind == b.kind && a.flags == b.flags && a.attempt == b.attempt && a.lane == b.lane &&
         a.who == b.who && a.number == b.number && a.since == b.since && a.until == b.until &&
         a.lease == b.lease && a.progress == b.progress && a.text == b.text && a.error == b.error &&
         a.result == b.result;
}

std::string encoded(const Record& record) {
  std::string bytes;
  WrittenTexts last;
  append_record(bytes, record, last);
  return bytes;
}

// One record, as the first of its frame.
bool take_first(std::string_view& bytes, Record& record) {
  ReadTexts last_texts;
  return take_record(bytes, record, last_texts);
}

// The bytes in a block of exactly their size, so that the address sanitizer sees a read beyond them.
bool decode_exactly(std::string_view from, Record& record, std::unique_ptr<char[]>& block) {
  block = std::make_unique<char[]>(from.size());
  std::memcpy(block.get(), from.data(), from.size());
  std::string_view bytes(block.get(), from.size());
  return take_first(bytes, record);
}

Record full_record(RecordKind kind) {
  static const std::string kLong(5000, 'e'), kZeros(700, '\0');
  Record r;
  r.kind = kind;
  r.flags = 0xff;
  r.attempt = UINT32_MAX;
  r.lane = {OperationName("pull"), ResourceId("sha256:0123456789abcdef/\xc3\xa4:%")};
  r.who = {NodeId("node-1"), RequestId(kZeros)};
  r.number = UINT64_MAX;
  r.since = Time::min();
  r.until = kNever;
  r.lease = Duration::min();
  r.progress = {UINT64_MAX, 1};
  r.text = kLong;
  r.error = "no space left";
  r.result = "sha256:e3b0";
  return r;
}

// The full record with one field at a time left at its default.
std::vector<Record> variants(RecordKind kind) {
  std::vector<Record> all(16, full_record(kind));
  all[1].flags = 0;
  all[2].attempt = 0;
  all[3].lane.operation = {};
  all[4].lane.resource = {};
  all[5].who.node = {};
  all[6].who.request = {};
  all[7].number = 0;
  all[8].since = {};
  all[9].until = {};
  all[10].lease = {};
  all[11].progress = {};
  all[12].text = {};
  all[13].error = {};
  all[14].result = {};
  all[15] = Record{};
  all[15].kind = kind;
  return all;
}

TEST(RecordCodec, EveryFieldOfEveryKindComesBack) {
  for (uint8_t kind = 1; kind <= uint8_t(kLastRecordKind); ++kind) {
    for (const Record& record : variants(RecordKind(kind))) {
      const std::string bytes = encoded(record);
      std::string_view rest = bytes;
      Record back;
      ASSERT_TRUE(take_first(rest, back)) << int(kind);
      EXPECT_TRUE(same(record, back)) << int(kind);
      EXPECT_TRUE(rest.empty());
    }
  }
}

TEST(RecordCodec, NumbersOfEveryLengthComeBack) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const uint64_t number : {uint64_t(1) << bits, (uint64_t(1) << bits) - 1}) {
      Record record = full_record(RecordKind::hold_set), back;
      record.number = number;
      record.attempt = uint32_t(number);
      record.lease = Duration(int64_t(~number));
      record.progress = {number, ~number};
      const std::string bytes = encoded(record);
      std::string_view rest = bytes;
      ASSERT_TRUE(take_first(rest, back));
      EXPECT_TRUE(same(record, back)) << number;
    }
  }
}

TEST(RecordCodec, RecordsFollowEachOtherInOneBuffer) {
  std::string bytes;
  WrittenTexts last;
  const auto kind_of = [](int i) { return RecordKind(1 + i % uint8_t(kLastRecordKind)); };
  for (int i = 0; i < 100; ++i) append_record(bytes, full_record(kind_of(i)), last);
  std::string_view rest = bytes;
  ReadTexts last_read;
  for (int i = 0; i < 100; ++i) {
    Record back;
    ASSERT_TRUE(take_record(rest, back, last_read));
    EXPECT_TRUE(same(full_record(kind_of(i)), back));
  }
  EXPECT_TRUE(rest.empty());
}

TEST(RecordCodec, AnErrorThatIsTheSameAsTheLastOneIsNotWrittenAgain) {
  const std::string first(4000, 'f'), second(4000, 's');
  std::string bytes;
  WrittenTexts last;
  const auto add = [&](std::string_view error) {
    Record record;
    record.kind = RecordKind::ending_set;
    record.who.node = NodeId("n");
    record.error = error;
    append_record(bytes, record, last);
  };
  const std::vector<std::string_view> errors = {first, first, "", first, second, second, first};
  for (std::string_view error : errors) add(error);
  // Again only where another one was between them.
  const auto copies = [&](std::string_view error) {
    size_t count = 0;
    for (size_t at = bytes.find(error); at != bytes.npos; at = bytes.find(error, at + error.size())) ++count;
    return count;
  };
  EXPECT_EQ(copies(first), 2u);
  EXPECT_EQ(copies(second), 1u);
  std::string_view rest = bytes;
  ReadTexts last_read;
  for (std::string_view error : errors) {
    Record back;
    ASSERT_TRUE(take_record(rest, back, last_read));
    EXPECT_EQ(back.error, error);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(RecordCodec, TheSameErrorAsBeforeTheFirstIsRefused) {
  std::string bytes;
  WrittenTexts last;
  Record record;
  record.kind = RecordKind::ending_set;
  record.error = "e";
  append_record(bytes, record, last);
  const size_t one = bytes.size();
  append_record(bytes, record, last);
  std::string_view second = std::string_view(bytes).substr(one);
  Record back;
  EXPECT_FALSE(take_first(second, back));
}

// Results and errors come in any combination, and each is remembered by itself.
TEST(RecordCodec, AResultThatIsTheSameAsTheLastOneIsNotWrittenAgain) {
  const std::string first(4000, 'f'), second(200, 's');
  const std::vector<std::pair<std::string_view, std::string_view>> texts = {
      {"", first},     {"e", first}, {"", ""},     {"e", second}, {"e", second},
      {second, first}, {second, ""}, {"e", first}, {"", second}};
  std::string bytes;
  WrittenTexts last;
  for (const auto& [error, result] : texts) {
    Record record;
    record.kind = RecordKind::ending_set;
    record.error = error;
    record.result = result;
    append_record(bytes, record, last);
  }
  EXPECT_LT(bytes.size(), 2 * first.size() + 3 * second.size() + 100);
  std::string_view rest = bytes;
  ReadTexts last_read;
  for (const auto& [error, result] : texts) {
    Record back;
    ASSERT_TRUE(take_record(rest, back, last_read));
    EXPECT_EQ(back.error, error);
    EXPECT_EQ(back.result, result);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(RecordCodec, TheSameResultAsBeforeTheFirstIsRefused) {
  std::string bytes;
  WrittenTexts last;
  Record record;
  record.kind = RecordKind::completion_set;
  record.result = "r";
  append_record(bytes, record, last);
  const size_t one = bytes.size();
  append_record(bytes, record, last);
  std::string_view second = std::string_view(bytes).substr(one);
  Record back;
  EXPECT_FALSE(take_first(second, back));
}

TEST(RecordCodec, EveryTruncationIsRefused) {
  const std::string bytes = encoded(full_record(RecordKind::hold_set));
  for (size_t size = 0; size < bytes.size(); ++size) {
    Record back;
    std::unique_ptr<char[]> block;
    EXPECT_FALSE(decode_exactly(std::string_view(bytes).substr(0, size), back, block)) << size;
  }
}

TEST(RecordCodec, RandomBytesAreNeverReadBeyondTheirEnd) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = char(random());
    if (bytes.size() > 2) {  // often far enough to reach the fields
      bytes[0] = char(1 + random() % 16);
      bytes[2] = char(random() % 128);
    }
    Record back;
    std::unique_ptr<char[]> block;
    if (!decode_exactly(bytes, back, block)) continue;
    std::string again;
    WrittenTexts last;
    append_record(again, back, last);  // reads all its texts
  }
}

TEST(RecordCodec, UnknownKindsAndFieldsAreRefused) {
  std::string bytes = encoded(full_record(RecordKind::token_mark));
  for (const int kind : {0, 19, 255}) {
    std::string changed = bytes;
    changed[0] = char(kind);
    std::string_view rest = changed;
    Record back;
    EXPECT_FALSE(take_first(rest, back)) << kind;
  }
  bytes[2] = char(uint8_t(bytes[2]) | 0x80);  // a sixteenth field
  std::string_view rest = bytes;
  Record back;
  EXPECT_FALSE(take_first(rest, back));
}

TEST(RecordCodec, ANumberThatDoesNotFitItsFieldIsRefused) {
  const std::string attempt_of_33_bits = {1, 2, 0, char(0x80), char(0x80), char(0x80), char(0x80), 0x10};
  const std::string number_of_65_bits = {14,         0x40,       0,          char(0xff), char(0xff),
                                         char(0xff), char(0xff), char(0xff), char(0xff), char(0xff),
                                         char(0xff), char(0xff), 2};
  for (const std::string_view bytes : {attempt_of_33_bits, number_of_65_bits}) {
    std::string_view rest = bytes;
    Record back;
    EXPECT_FALSE(take_first(rest, back));
  }
}

}  // namespace
}  // namespace turnstile
