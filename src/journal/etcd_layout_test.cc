// The keys and values of the replicated store: what is written is read, and nothing else is.
#include "journal/etcd_layout.h"

#include <gtest/gtest.h>

namespace turnstile {
namespace {

TEST(EtcdLayout, LogKeysSortByNumberAndSayIt) {
  const EtcdKeys keys("/a/b");
  EXPECT_EQ(keys.log(255), "/a/b/log/00000000000000ff");
  EXPECT_LT(keys.log(0xfff), keys.log(0x1000));
  EXPECT_LT(keys.log(~uint64_t(0)), keys.log_end());
  EXPECT_EQ(keys.number_of(keys.log(0x1234)), 0x1234u);
  EXPECT_FALSE(keys.number_of("/a/b/log/12"));
  EXPECT_FALSE(keys.number_of("/a/b/log/00000000000000fg"));
  EXPECT_FALSE(keys.number_of("/"));
}

TEST(EtcdLayout, ALaterGenerationSortsBehindAllBeforeItAndBeforeThePointer) {
  const EtcdKeys keys("p");
  EXPECT_LT(keys.generation(7, 900), keys.generation(8, 1));
  EXPECT_LT(keys.generation(7, 9), keys.generation(7, 10));
  EXPECT_LT(keys.chunk(keys.generation(INT64_MAX, 1), 0), keys.current());
}

TEST(EtcdLayout, WhatWasEncodedIsDecodedAndAnyChangedByteIsSeen) {
  const LogPart part{12, 34, Time(Duration(56)), 1, 3, 78, "payload"};
  std::string bytes = encode(part);
  const auto read = decode_log_part(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->term, 12);
  EXPECT_EQ(read->number, 34u);
  EXPECT_EQ(read->time, part.time);
  EXPECT_EQ(read->part, 1u);
  EXPECT_EQ(read->parts, 3u);
  EXPECT_EQ(read->records, 78u);
  EXPECT_EQ(read->payload, "payload");
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= 1;
    EXPECT_FALSE(decode_log_part(bytes)) << i;
    bytes[i] ^= 1;
    EXPECT_FALSE(decode_log_part(std::string_view(bytes).substr(0, i)));
  }
  EXPECT_FALSE(decode_snapshot_chunk(bytes)) << "another kind";
}

TEST(EtcdLayout, APointerSaysWhatBelongsToItsSnapshot) {
  const SnapshotPointer pointer{"generation", 5, 6, 7, 8, Time(Duration(9))};
  const auto read = decode_snapshot_pointer(encode(pointer));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->generation, "generation");
  EXPECT_EQ(read->first_number, 5u);
  EXPECT_EQ(read->chunks, 6u);
  EXPECT_EQ(read->records, 7u);
  EXPECT_EQ(read->bytes, 8u);
  EXPECT_EQ(read->time, pointer.time);
}

}  // namespace
}  // namespace turnstile
