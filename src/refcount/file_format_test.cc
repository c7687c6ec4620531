// The file format against every small damage, and against what a stranger could hand us.
#include "refcount/file_format.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace turnstile::testing {
namespace {

using namespace refcount;

std::shared_ptr<const ReferenceCount> count_of(std::set<std::string> nodes) {
  return std::make_shared<const ReferenceCount>(ReferenceCount{std::move(nodes)});
}

Counts small_counts() { return {{"layer-a", count_of({"n1", "n2"})}, {"layer-b", count_of({"n3"})}}; }

TEST(FileFormat, WhatIsEncodedIsDecoded) {
  for (const Counts& counts : {Counts{}, small_counts()}) {
    const auto decoded = decode_counts(encode_counts(counts));
    ASSERT_TRUE(decoded) << decoded.error().what;
    ASSERT_EQ(decoded->size(), counts.size());
    for (const auto& [resource, count] : counts) EXPECT_EQ(decoded->at(resource)->nodes, count->nodes);
  }
}

// docs/refcount-format.md shows this file; whoever changes the format must see it here.
TEST(FileFormat, TheBytesAreTheDocumentedOnes) {
  const std::string bytes = encode_counts({{"r", count_of({"n"})}});
  EXPECT_EQ(bytes.size(), 40u + 12 + 14);
  EXPECT_EQ(bytes.substr(0, 32),
            std::string("TURNREFC\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x42\0\0\0\0\0\0\0", 32));
  EXPECT_EQ(bytes.substr(48), std::string("\x0e\0\0\0\1\0\0\0r\1\0\0\0\1\0\0\0n", 18));
}

TEST(FileFormat, EveryFlippedBitIsFound) {
  const std::string good = encode_counts(small_counts());
  for (size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = char(bad[at] ^ (1 << bit));
      EXPECT_FALSE(decode_counts(bad)) << "byte " << at << " bit " << bit;
    }
}

TEST(FileFormat, EveryCutAndEveryAddedByteIsFound) {
  const std::string good = encode_counts(small_counts());
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(decode_counts(good.substr(0, size))) << size;
  EXPECT_FALSE(decode_counts(good + '\0'));
  EXPECT_FALSE(decode_counts(good + good));
}

TEST(FileFormat, SaysWhichRecordIsDamaged) {
  std::string bad = encode_counts(small_counts());
  const size_t second = 40 + 12 + (4 + 7 + 4 + 4 + 2 + 4 + 2);
  bad.back() = char(bad.back() ^ 1);
  const auto decoded = decode_counts(bad);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().at, second);
}

// Right checksums around a wrong content: what a faulty writer, not a faulty disk, would make.
TEST(FileFormat, ANewerVersionSaysSo) {
  std::string newer = encode_counts({});
  newer[8] = 2;
  const uint64_t checksum = xxh3_64(std::string_view(newer).substr(0, 32));
  newer.replace(32, 8, reinterpret_cast<const char*>(&checksum), 8);
  const auto decoded = decode_counts(newer);
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().what.find("version 2"), std::string::npos) << decoded.error().what;
}

TEST(FileFormat, RecordsWithoutNodesOrWithAnEmptyNodeAreRefused) {
  EXPECT_FALSE(decode_counts(encode_counts({{"r", count_of({})}})));
  EXPECT_FALSE(decode_counts(encode_counts({{"r", count_of({""})}})));
  EXPECT_FALSE(decode_counts(encode_counts({{"", count_of({"n"})}})));
}

}  // namespace
}  // namespace turnstile::testing
