// Writing one blob, without gRPC and without anybody to ask.
#include "content/writer.h"

#include <signal.h>
#include <sys/resource.h>

#include <thread>

#include "content/test_directory.h"
#include "refcount/test_syncs.h"

namespace turnstile::content {
namespace {

class WriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<Writer> open(const std::string& ref, int64_t total = 0) {
    Outcome<std::unique_ptr<Writer>> writer = Writer::open(store_, locks_, ref, total, "");
    EXPECT_TRUE(writer) << writer.error().message;
    return std::move(*writer);
  }
  std::string so_far(Writer& writer) { return (**writer.digest_so_far()).text(); }

  TestDirectory directory_;
  BlobStore store_ = open_blobs(directory_ / "root");
  KeyLocks locks_;
};

TEST_F(WriterTest, PublishesWhatWasWrittenUnderItsDigest) {
  auto writer = open("r", 6);
  EXPECT_EQ(so_far(*writer), digest_of("").text());
  ASSERT_TRUE(writer->write(0, "abc"));
  EXPECT_EQ(so_far(*writer), digest_of("abc").text());
  ASSERT_TRUE(writer->write(3, "def"));
  ASSERT_TRUE(writer->catch_up("def"));
  const Outcome<Digest> digest = writer->verify(6, digest_of("abcdef"));
  ASSERT_TRUE(digest) << digest.error().message;
  ASSERT_TRUE(writer->publish(*digest));
  EXPECT_EQ(file_text(blob_path(directory_ / "root", *digest)), "abcdef");
  EXPECT_EQ(store_.ingest_status("r").error().code, ErrorClass::not_found);
  writer->close();
  writer->close();  // harmless
  EXPECT_EQ(writer->write(6, "x").error().code, ErrorClass::failed_precondition);
  EXPECT_EQ(writer->verify(0, std::nullopt).error().code, ErrorClass::failed_precondition);
}

TEST_F(WriterTest, ResumesWhereTheLastOneStopped) {
  auto first = open("r", 6);
  ASSERT_TRUE(first->write(0, "abc"));
  const IngestStatus before = first->status();
  first->close();
  auto second = open("r");
  EXPECT_EQ(second->status().offset, 3);
  EXPECT_EQ(second->status().total, 6);
  EXPECT_EQ(second->status().started, before.started);
  EXPECT_EQ(second->status().updated, before.updated);
  EXPECT_EQ(so_far(*second), digest_of("abc").text());
  ASSERT_TRUE(second->write(3, "def"));
  EXPECT_EQ(*second->verify(0, std::nullopt), digest_of("abcdef"));
}

TEST_F(WriterTest, NoticesThatResumedBytesAreNotWhatTheyWere) {
  auto first = open("r");
  ASSERT_TRUE(first->write(0, "abc"));
  first->close();
  put_file(directory_ / ("root/ingest/node-a/" + std::string(digest_of("r").hex()) + "/data"), "axc");
  auto second = open("r");
  ASSERT_TRUE(second->write(3, "def"));
  EXPECT_EQ(second->verify(6, digest_of("abcdef")).error().code, ErrorClass::failed_precondition);
}

TEST_F(WriterTest, ALargeResumedIngestIsHashedAfterTheFirstAnswer) {
  const std::string large(20 << 20, 'x');
  auto first = open("r");
  ASSERT_TRUE(first->write(0, large));
  first->close();
  auto second = open("r");
  EXPECT_FALSE(*second->digest_so_far());
  ASSERT_TRUE(second->catch_up());
  EXPECT_EQ(so_far(*second), digest_of(large).text());
}

TEST_F(WriterTest, WritesAtTheEndOnlyOrFromTheBeginning) {
  auto writer = open("r");
  ASSERT_TRUE(writer->write(0, "abc"));
  for (int64_t offset : {int64_t(2), int64_t(4), int64_t(-1), INT64_MAX})
    EXPECT_EQ(writer->write(offset, "x").error().code, ErrorClass::out_of_range);
  ASSERT_TRUE(writer->write(0, "xy"));
  EXPECT_EQ(writer->status().offset, 2);
  EXPECT_EQ(*writer->verify(2, std::nullopt), digest_of("xy"));
}

TEST_F(WriterTest, HashesAnewWhatIsWrittenAnew) {
  auto writer = open("r");
  ASSERT_TRUE(writer->write(0, "abc"));
  EXPECT_EQ(so_far(*writer), digest_of("abc").text());
  ASSERT_TRUE(writer->write(0, "xy"));
  EXPECT_EQ(so_far(*writer), digest_of("xy").text());
  EXPECT_EQ(*writer->verify(2, std::nullopt), digest_of("xy"));
}

TEST_F(WriterTest, AWriteThatFailsHalfWayLeavesTheFileAsItWas) {
  auto writer = open("r");
  ASSERT_TRUE(writer->write(0, "abc"));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{4, before.rlim_max};  // stands for a full disk
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const Outcome<void> written = writer->write(3, "def");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(written);
  EXPECT_EQ(writer->status().offset, 3);
  const Outcome<Digest> digest = writer->verify(3, digest_of("abc"));
  ASSERT_TRUE(digest) << digest.error().message;
  EXPECT_TRUE(writer->publish(*digest));
  EXPECT_EQ(file_text(blob_path(directory_ / "root", *digest)), "abc");
}

TEST_F(WriterTest, AWrongSizeOrDigestKeepsTheDataForAnotherTry) {
  auto writer = open("r");
  ASSERT_TRUE(writer->write(0, "abc"));
  EXPECT_EQ(writer->verify(4, std::nullopt).error().code, ErrorClass::failed_precondition);
  EXPECT_EQ(writer->verify(3, digest_of("abd")).error().code, ErrorClass::failed_precondition);
  const Outcome<Digest> digest = writer->verify(3, digest_of("abc"));
  ASSERT_TRUE(digest);
  EXPECT_TRUE(writer->publish(*digest));
}

TEST_F(WriterTest, ASha512IsHashedAtTheCommit) {
  auto writer = open("r");
  ASSERT_TRUE(writer->write(0, "abc"));
  EXPECT_FALSE(writer->verify(3, digest_of("abd", Algorithm::sha512)));
  const Outcome<Digest> digest = writer->verify(3, digest_of("abc", Algorithm::sha512));
  ASSERT_TRUE(digest);
  ASSERT_TRUE(writer->publish(*digest));
  EXPECT_EQ(file_text(blob_path(directory_ / "root", *digest)), "abc");
}

TEST_F(WriterTest, NeverReplacesABlobAndDropsTheIngestThen) {
  put_file(blob_path(directory_ / "root", digest_of("abc")), "first");
  auto writer = open("r");
  ASSERT_TRUE(writer->write(0, "abc"));
  EXPECT_EQ(writer->publish(*writer->verify(0, std::nullopt)).error().code, ErrorClass::already_exists);
  EXPECT_EQ(file_text(blob_path(directory_ / "root", digest_of("abc"))), "first");
  EXPECT_TRUE(store_.ingests()->empty());
}

// A second sync would say that all is well: the error was told, and the kernel takes the pages for written.
TEST_F(WriterTest, WhatCouldNotBeSyncedIsWrittenAnew) {
  auto writer = open("r", 3);
  ASSERT_TRUE(writer->write(0, "abc"));
  const Outcome<Digest> digest = writer->verify(3, std::nullopt);
  ASSERT_TRUE(digest);
  {
    const testing::FailingSync failing(1);
    const Outcome<void> published = writer->publish(*digest);
    ASSERT_FALSE(published);
    EXPECT_NE(published.error().message.find("thrown away"), std::string::npos) << published.error().message;
  }
  EXPECT_FALSE(writer->publish(*digest)) << "by the same stream";
  writer.reset();
  auto next = open("r", 3);
  EXPECT_EQ(next->status().offset, 0);
  ASSERT_TRUE(next->write(0, "abc"));
  EXPECT_TRUE(next->publish(*digest));
  EXPECT_EQ(file_text(blob_path(directory_ / "root", *digest)), "abc");
}

// Else a blob that was committed is gone after a power cut, or not guarded any more.
TEST_F(WriterTest, BothNamesOfABlobAreSyncedBeforeItIsPublished) {
  for (const std::string folder : {"/blobs/sha256", "/uses/node-a/sha256"}) {
    auto writer = open("r");
    ASSERT_TRUE(writer->write(0, folder));
    const Outcome<Digest> digest = writer->verify(0, std::nullopt);
    ASSERT_TRUE(digest);
    const testing::FailingSync failing(1, folder);
    EXPECT_FALSE(writer->publish(*digest)) << folder;
    EXPECT_TRUE(failing.has_failed()) << folder;
    ASSERT_TRUE(store_.drop_ingest("r"));
  }
}

TEST_F(WriterTest, TheSecondNameOfABlobThatWasThereIsSynced) {
  put_file(blob_path(directory_ / "root", digest_of("abc")), "abc");
  const testing::FailingSync failing(1, "/uses/node-a/sha256");
  EXPECT_FALSE(store_.guard(digest_of("abc")));
  EXPECT_TRUE(failing.has_failed());
}

TEST_F(WriterTest, OneForEachRefAndTheSecondWaitsAMoment) {
  auto writer = open("r");
  EXPECT_EQ(locks_.take("r", std::chrono::milliseconds(1)).error().code, ErrorClass::unavailable);
  auto other = open("other");  // is not in the way
  std::thread closing([&] { writer->close(); });
  EXPECT_TRUE(Writer::open(store_, locks_, "r", 0, ""));
  closing.join();
}

TEST_F(WriterTest, AnAbortedIngestCannotBeCommitted) {
  auto writer = open("r");
  ASSERT_TRUE(writer->write(0, "abc"));
  ASSERT_TRUE(store_.drop_ingest("r"));
  ASSERT_TRUE(store_.drop_ingest("r"));  // missing is fine
  EXPECT_EQ(writer->verify(0, std::nullopt).error().code, ErrorClass::failed_precondition);
}

TEST_F(WriterTest, AnotherTotalBeginsAnew) {
  auto first = open("r", 6);
  ASSERT_TRUE(first->write(0, "abc"));
  first->close();
  EXPECT_EQ(open("r", 7)->status().offset, 0);
}

}  // namespace
}  // namespace turnstile::content
