// Reading what a node uses, in the background and by command; taking over containerd's own store, and back.
#include <thread>

#include "content/background_verification.h"
#include "content/export_command.h"
#include "content/import_command.h"
#include "content/test_directory.h"
#include "content/verify_command.h"
#include "refcount/test_syncs.h"

namespace turnstile::content {
namespace {

// A node that has taken over a store of containerd's.
class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    settings_.node = "node-a";
    settings_.root = directory_ / "root";
    settings_.state = directory_ / "state";
    settings_.of_command.from = directory_ / "from";
    settings_.of_command.to = directory_ / "to";
    settings_.log_level = LogLevel::off;
  }

  void put_source(const std::string& bytes) {
    put_file(blob_path(settings_.of_command.from, digest_of(bytes)), bytes);
  }
  std::string published(const std::string& bytes) const {
    return blob_path(settings_.root, digest_of(bytes));
  }
  std::string second_name(const std::string& bytes) const {
    return use_path(settings_.root, digest_of(bytes));
  }
  // As bad memory or a bad disk does it: the same file, other bytes.
  void damage(const std::string& bytes) const {
    std::filesystem::permissions(published(bytes), std::filesystem::perms::owner_all);
    put_file(published(bytes), std::string(bytes.size(), '?'));
  }
  std::unique_ptr<ContentStore> start_plugin() const { return open_node(settings_.root, settings_.state); }

  const TestDirectory directory_;
  Settings settings_;
};

TEST_F(CommandsTest, AnImportLinksWhatIsIntactAndCanBeRepeated) {
  put_source("abc");
  put_file(blob_path(settings_.of_command.from, digest_of("def")), "other bytes");
  put_file(settings_.of_command.from + "/blobs/sha256/no-digest", "x");
  EXPECT_EQ(run_import(settings_), 1) << "something is damaged";
  EXPECT_TRUE(std::filesystem::equivalent(published("abc"), second_name("abc")));
  EXPECT_EQ(std::filesystem::hard_link_count(published("abc")), 3u);
  EXPECT_FALSE(std::filesystem::exists(published("def")));
  {
    const auto node = start_plugin();
    EXPECT_EQ(node->info(digest_of("abc")).value().size, 3);
    EXPECT_FALSE(node->info(digest_of("def")));
    EXPECT_EQ(run_import(settings_), 1) << "the plugin runs";
  }
  put_source("def");
  EXPECT_EQ(run_import(settings_), 0);
  EXPECT_EQ(run_import(settings_), 0);
  EXPECT_EQ(start_plugin()->totals().blobs, 2u);
}

TEST_F(CommandsTest, WhatAnotherNodeHasIsUsedAndIsReplacedIfItIsDamaged) {
  for (const char* bytes : {"abc", "def"}) put_source(bytes);
  put_file(published("abc"), "abc");
  put_file(published("def"), "???");
  EXPECT_EQ(run_import(settings_), 0);
  EXPECT_FALSE(
      std::filesystem::equivalent(published("abc"), blob_path(settings_.of_command.from, digest_of("abc"))));
  EXPECT_TRUE(std::filesystem::equivalent(published("abc"), second_name("abc")));
  EXPECT_EQ(file_text(published("def")), "def");
}

TEST_F(CommandsTest, AnExportCopiesWhatTheNodeUses) {
  for (const char* bytes : {"abc", "def"}) put_source(bytes);
  ASSERT_EQ(run_import(settings_), 0);
  const auto node = start_plugin();  // it may run
  put_file(blob_path(settings_.of_command.to, digest_of("abc")), "half");
  EXPECT_EQ(run_export(settings_), 0);
  for (const std::string bytes : {"abc", "def"}) {
    const std::string copy = blob_path(settings_.of_command.to, digest_of(bytes));
    EXPECT_EQ(file_text(copy), bytes);
    EXPECT_EQ(std::filesystem::hard_link_count(copy), 1u) << "a link would pass for a use";
  }
  damage("abc");
  std::filesystem::remove_all(settings_.of_command.to);
  EXPECT_EQ(run_export(settings_), 1);
  EXPECT_FALSE(std::filesystem::exists(blob_path(settings_.of_command.to, digest_of("abc"))));
}

TEST_F(CommandsTest, AnExportWhoseNameCouldNotBeSyncedIsMadeAnew) {
  put_source("abc");
  ASSERT_EQ(run_import(settings_), 0);
  const std::string copy = blob_path(settings_.of_command.to, digest_of("abc"));
  {
    const testing::FailingSync failing(1, "/to/blobs/sha256");
    EXPECT_EQ(run_export(settings_), 1);
    EXPECT_TRUE(failing.has_failed());
  }
  EXPECT_FALSE(std::filesystem::exists(copy)) << "it would pass for one that is there for good";
  EXPECT_EQ(run_export(settings_), 0);
  EXPECT_EQ(file_text(copy), "abc");
}

TEST_F(CommandsTest, AnImportThatLeavesSomethingOutSaysSo) {
  put_source("abc");
  const std::string unreadable = blob_path(settings_.of_command.from, digest_of("def"));
  std::filesystem::create_directories(unreadable);
  EXPECT_EQ(run_import(settings_), 1);
  EXPECT_TRUE(std::filesystem::exists(published("abc"))) << "the rest is imported";
  std::filesystem::remove(unreadable);
  EXPECT_EQ(run_import(settings_), 0);
}

TEST_F(CommandsTest, OnlyASourceThatIsGoneWasRemovedMeanwhile) {
  put_source("abc");
  const testing::FailingSync failing(1, std::string(digest_of("abc").hex()), ENOENT);
  EXPECT_EQ(run_import(settings_), 1);
  EXPECT_TRUE(failing.has_failed());
}

TEST_F(CommandsTest, VerifyTellsWhatIsNotWell) {
  for (const char* bytes : {"abc", "def"}) put_source(bytes);
  ASSERT_EQ(run_import(settings_), 0);
  const auto node = start_plugin();
  const auto verify = [&](Settings settings) {
    ::testing::internal::CaptureStdout();
    const int code = run_verify(settings);
    return std::pair{code, ::testing::internal::GetCapturedStdout()};
  };
  EXPECT_EQ(verify(settings_).first, 0);
  std::filesystem::remove(published("abc"));
  const auto [code, said] = verify(settings_);
  EXPECT_EQ(code, 1);
  EXPECT_NE(said.find(digest_of("abc").text() + " gone: only this node"), std::string::npos) << said;
  std::filesystem::remove(second_name("abc"));
  damage("def");
  Settings away = settings_;
  away.of_command.put_away = true;
  EXPECT_NE(verify(settings_).second.find(digest_of("abc").text() + " gone: no root"), std::string::npos);
  EXPECT_NE(verify(away).second.find(digest_of("def").text() + " damaged"), std::string::npos);
  for (const std::string& name : {published("def"), second_name("def")})
    EXPECT_FALSE(std::filesystem::exists(name)) << name;
  Settings one = settings_;
  one.of_command.sample = 1;
  EXPECT_NE(verify(one).second.find("1 blobs"), std::string::npos);
}

TEST_F(CommandsTest, WhatHasBeenPutRightMeanwhileIsNotPutAway) {
  put_source("abc");
  ASSERT_EQ(run_import(settings_), 0);
  damage("abc");
  const BlobStore blobs = open_blobs(settings_.root);
  const Outcome<OpenBlob> seen = blobs.find(digest_of("abc"));
  ASSERT_TRUE(seen);
  std::filesystem::remove(published("abc"));
  put_file(published("abc"), "abc");
  EXPECT_EQ(blobs.put_damaged_away(digest_of("abc"), *seen).value(), false);
  EXPECT_EQ(file_text(published("abc")), "abc");
  EXPECT_FALSE(std::filesystem::exists(second_name("abc"))) << "that one is damaged";
}

TEST_F(CommandsTest, InTheBackgroundWhatIsNotWellIsFoundCountedOnceAndPutAway) {
  for (const char* bytes : {"abc", "def", "ghi"}) put_source(bytes);
  ASSERT_EQ(run_import(settings_), 0);
  const auto node = start_plugin();
  ASSERT_TRUE(node->open(digest_of("abc"))) << "a descriptor that would hide what is wrong";
  damage("abc");
  for (const std::string& name : {published("def"), second_name("def"), published("ghi")})
    std::filesystem::remove(name);
  Metrics metrics;
  const BackgroundVerification verification(*node, metrics, std::chrono::milliseconds(20));
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto all_found = [&] {
    return metrics.value(Count::damaged_blobs) > 0 && metrics.value(Count::lost_blobs) > 0 &&
           std::filesystem::exists(published("ghi"));
  };
  while (!all_found() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(metrics.value(Count::damaged_blobs), 1u);
  EXPECT_EQ(metrics.value(Count::lost_blobs), 1u);
  EXPECT_EQ(file_text(published("ghi")), "ghi") << "published again";
  EXPECT_FALSE(node->open(digest_of("abc"))) << "rather nothing than other bytes";
}

TEST(Pace, ReadsNoFasterThanItMayAndEndsWhenItIsTold) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(Pace(10'000).after(500));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(49));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(Pace(1, stop.get_token()).after(1'000'000'000)) << "in thirty years";
}

}  // namespace
}  // namespace turnstile::content
