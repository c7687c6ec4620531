// A standby's copy of the store: it reads what is new, and notices what has changed behind its back.
#include "journal/etcd_image.h"

#include <gtest/gtest.h>

#include "journal/etcd_test_support.h"
#include "journal/journal_test_support.h"

namespace turnstile::testing {
namespace {

using Look = EtcdImage::Look;

class EtcdImageTest : public ::testing::Test {
 protected:
  void put_batch(uint64_t number, uint64_t n, etcd::Revision term = 7, uint32_t parts = 1) {
    FrameBuilder batch;
    for (const Record& record : step_records(n)) batch.add(record);
    LogPart part{term, number, at(int64_t(n)), 0, parts, batch.records(), batch.payload()};
    etcd_.make(keys_.log(number), encode(part));
  }
  // What has been given so far, with what is new.
  const World& world() {
    const auto end = image_.load([&](const Record& record) { given_.apply(record), ++records_; });
    EXPECT_TRUE(end);
    return given_;
  }
  bool refresh(Look look = Look::new_ones) { return image_.refresh(0, look, kWithin).has_value(); }
  // As a leader does it: the log before `first_number` is gone in the same moment.
  void put_snapshot(uint64_t first_number, uint64_t n) {
    FrameBuilder chunk;
    world_after(n).dump([&](const Record& record) { chunk.add(record); });
    SnapshotPointer pointer{keys_.generation(7, first_number),
                            first_number,
                            1,
                            chunk.records(),
                            chunk.payload_size(),
                            at(int64_t(n))};
    etcd_.make(keys_.chunk(pointer.generation, 0),
               encode(SnapshotChunk{0, chunk.records(), chunk.payload()}));
    etcd_.make(keys_.current(), encode(pointer));
    etcd_.erase(keys_.log(0), keys_.log(first_number));
  }

  static constexpr std::chrono::milliseconds kWithin{100};
  const EtcdKeys keys_{"p"};
  FakeEtcd etcd_;
  EtcdImage image_{etcd_, keys_};
  World given_;
  size_t records_ = 0;
};

TEST_F(EtcdImageTest, OnlyWhatIsNewIsRead) {
  for (uint64_t n = 1; n <= 200; ++n) put_batch(n, n);
  ASSERT_TRUE(refresh());
  EXPECT_EQ(world(), world_after(200));
  EXPECT_EQ(image_.next_number(), 201u);
  put_batch(201, 201);
  const size_t before = etcd_.values_read;
  ASSERT_TRUE(refresh());
  EXPECT_EQ(etcd_.values_read, before + 1);
  ASSERT_TRUE(refresh(Look::all));
  EXPECT_EQ(etcd_.values_read, before + 1) << "revisions are compared, not values";
  EXPECT_EQ(world(), world_after(201));
}

TEST_F(EtcdImageTest, ALongLogIsReadInPagesOfAFewMegabytes) {
  const auto put = [&](uint64_t first, uint64_t last, size_t bytes) {
    etcd::Transaction all;
    for (uint64_t n = first; n <= last; ++n)
      all.puts.push_back({keys_.log(n), std::string(bytes, 'x'), etcd::LeaseId::none});
    ASSERT_TRUE(etcd_.commit(all, kWithin));
  };
  put(1, 3000, 200);
  ASSERT_TRUE(refresh());
  EXPECT_EQ(image_.next_number(), 3001u);
  EXPECT_LE(etcd_.ranges, 6u) << "of small keys many";
  etcd_.largest_answer = 0;
  put(3001, 3200, 120'000);
  ASSERT_TRUE(refresh());
  EXPECT_EQ(image_.next_number(), 3201u);
  EXPECT_LE(etcd_.largest_answer, 10'000'000u) << "of large ones few";
}

TEST_F(EtcdImageTest, ASlowNetworkBringsItAll) {
  etcd_.bytes_a_second = 250'000;
  SnapshotPointer pointer{keys_.generation(7, 1), 1, 12, 0, 0, at(1)};
  for (uint64_t i = 0; i < pointer.chunks; ++i)
    etcd_.make(keys_.chunk(pointer.generation, i), std::string(1'000'000, 'x'));
  etcd_.make(keys_.current(), encode(pointer));
  etcd::Transaction all;
  for (uint64_t n = 1; n <= 100; ++n)
    all.puts.push_back({keys_.log(n), std::string(120'000, 'x'), etcd::LeaseId::none});
  ASSERT_TRUE(etcd_.commit(all, kWithin));
  ASSERT_TRUE(refresh());
  EXPECT_EQ(image_.next_number(), 101u);
}

TEST_F(EtcdImageTest, S45_WhatALaterTermHasWrittenInPlaceOfWhatWasReadIsNoticed) {
  for (uint64_t n = 1; n <= 3; ++n) put_batch(n, n);
  put_batch(4, 99, 7, 2);  // never finished
  ASSERT_TRUE(refresh());
  EXPECT_EQ(world(), world_after(3));
  etcd_.erase(keys_.log(4));
  put_batch(4, 4, 9);
  ASSERT_TRUE(refresh(Look::all));
  EXPECT_EQ(world(), world_after(4));
}

TEST_F(EtcdImageTest, EachRecordIsGivenOnceAndASnapshotOfWhatWasGivenIsNotRead) {
  for (uint64_t n = 1; n <= 20; ++n) put_batch(n, n);
  ASSERT_TRUE(refresh());
  EXPECT_EQ(world(), world_after(20));
  const size_t records = records_, values = etcd_.values_read;
  EXPECT_EQ(world(), world_after(20));
  EXPECT_EQ(records_, records) << "nothing is new";
  put_snapshot(15, 20);
  put_batch(21, 21);
  ASSERT_TRUE(refresh(Look::all));
  EXPECT_FALSE(image_.in_doubt());
  EXPECT_EQ(world(), world_after(21));
  EXPECT_EQ(etcd_.values_read, values + 2) << "the pointer and the new batch";
  EXPECT_EQ(records_, records + step_records(21).size());
}

TEST_F(EtcdImageTest, ALogThatHasGoneOnBehindWhatWasGivenIsADoubt) {
  for (uint64_t n = 1; n <= 5; ++n) put_batch(n, n);
  ASSERT_TRUE(refresh());
  EXPECT_EQ(world(), world_after(5));
  for (uint64_t n = 6; n <= 9; ++n) put_batch(n, n);
  put_snapshot(8, 9);
  ASSERT_TRUE(refresh());
  EXPECT_TRUE(image_.in_doubt());
}

TEST_F(EtcdImageTest, WhatWasGivenAndIsOtherwiseNowIsADoubt) {
  for (uint64_t n = 1; n <= 5; ++n) put_batch(n, n);
  ASSERT_TRUE(refresh());
  EXPECT_EQ(world(), world_after(5));
  put_batch(3, 17);
  ASSERT_TRUE(refresh(Look::all));
  EXPECT_TRUE(image_.in_doubt());
}

TEST_F(EtcdImageTest, AnEtcdThatTellsWhatIsNoLongerSoIsADoubt) {
  put_batch(1, 1);
  const etcd::Revision before = etcd_.revision();
  put_batch(2, 2);
  ASSERT_TRUE(refresh());
  EXPECT_EQ(world(), world_after(2));
  ASSERT_TRUE(image_.refresh(before, Look::new_ones, kWithin));
  EXPECT_TRUE(image_.in_doubt());
}

TEST_F(EtcdImageTest, AnErrorIsToldAndTheNextLookGoesOn) {
  put_batch(1, 1);
  etcd_.all_fail = {etcd::Failure::unknown, "away"};
  EXPECT_FALSE(refresh());
  etcd_.all_fail.reset();
  ASSERT_TRUE(refresh());
  EXPECT_EQ(world(), world_after(1));
}

}  // namespace
}  // namespace turnstile::testing
