// Looking at a journal and backing it up while a server writes to it; what a backup refuses.
#include "journal/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/hash.h"
#include "journal/journal_test_support.h"
#include "journal/tar.h"

namespace turnstile::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class Backup : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "turnstile-backup-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path journal() const { return root_ / "journal"; }
  fs::path file() const { return root_ / "backup.tar"; }

  void write_steps(uint64_t count) {
    auto opened = open_file_journal(journal(), small_options());
    ASSERT_TRUE(opened) << opened.error().message;
    DrivenJournal driven(*std::move(opened));
    ASSERT_TRUE(driven.recover());
    driven.start();
    for (uint64_t n = 1; n <= count; ++n) ASSERT_TRUE(driven.commit(n));
  }
  Result<BackupInfo> back_up(const fs::path& to) {
    const auto seen = inspect_directory(journal());
    if (!seen) return std::unexpected(seen.error());
    return write_backup(*seen, to, "test", at(1'700'000'000'000'000));
  }
  Result<World> restored(const fs::path& from, const fs::path& to) {
    if (const auto done = restore_backup(from, to); !done) return std::unexpected(done.error());
    auto opened = open_file_journal(to, small_options());
    if (!opened) return std::unexpected(opened.error());
    return DrivenJournal(*std::move(opened)).recover();
  }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  }
  // A directory's files with their contents, and when they were changed.
  static std::map<std::string, std::pair<std::string, fs::file_time_type>> everything(const fs::path& path) {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> out;
    for (const auto& entry : fs::directory_iterator(path))
      out[entry.path().filename()] = {content(entry.path()), entry.last_write_time()};
    return out;
  }

  fs::path root_;
};

TEST_F(Backup, WhatIsRestoredIsWhatWasBackedUp) {
  write_steps(50);
  const auto before = everything(journal());
  const auto info = back_up(file());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->next_batch, 51u);
  EXPECT_EQ(info->records, 100u);
  EXPECT_EQ(info->bytes, fs::file_size(file()));
  EXPECT_EQ(everything(journal()), before);
  const auto world = restored(file(), root_ / "new");
  ASSERT_TRUE(world) << world.error().message;
  EXPECT_EQ(*world, world_after(50));
}

TEST_F(Backup, FilesAndDirectoryAreForTheServerAlone) {
  write_steps(5);
  ASSERT_TRUE(back_up(file()));
  ASSERT_TRUE(restore_backup(file(), root_ / "new"));
  struct stat status;
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((root_ / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat((root_ / "new" / kFirstLog).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

// A journal that is written to as fast as it goes, by one thread step after step, while another takes
// snapshots without a pause: new files come and old ones go all the time.
class BusyJournal {
 public:
  explicit BusyJournal(const fs::path& path) : driven_(*open_file_journal(path, small_options())) {
    EXPECT_TRUE(driven_.recover());
    driven_.start();
    writer_ = std::thread([this] { write(); });
    snapshooter_ = std::thread([this] { take_snapshots(); });
  }
  ~BusyJournal() {
    done_ = true;
    writer_.join();
    snapshooter_.join();
  }

  // Steps up to this one may be in the journal; those up to the other have been acknowledged.
  uint64_t begun() const { return begun_; }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t snapshots() const { return snapshots_; }

 private:
  void write() {
    for (uint64_t n = 1; !done_; ++n) {
      uint64_t sequence;
      {
        std::lock_guard lock(mutex_);
        begun_ = n;
        for (const Record& record : step_records(n)) world_.apply(record);
        sequence = driven_->append(step_records(n), at(int64_t(n) * 1000));
      }
      if (!driven_.wait(sequence)) break;
      acknowledged_ = n;
    }
  }
  void take_snapshots() {
    while (!done_) {
      const auto dump = [&](const Journal::Write& write) {
        std::lock_guard lock(mutex_);
        world_.dump(write);
      };
      if (driven_->snapshot(dump)) ++snapshots_;
      std::this_thread::yield();
    }
  }

  DrivenJournal driven_;
  std::mutex mutex_;
  World world_;
  std::atomic<uint64_t> begun_ = 0, acknowledged_ = 0, snapshots_ = 0;
  std::atomic<bool> done_ = false;
  std::thread writer_, snapshooter_;
};

// The promise of `turnstile backup`.
TEST_F(Backup, TakenUnderLoadIsAStateThatExistedAndHasAllThatWasAcknowledgedBeforeItBegan) {
  const BusyJournal busy(journal());
  for (int i = 0; i < 20; ++i) {
    const fs::path to = root_ / fmt::format("backup-{}.tar", i),
                   directory = root_ / fmt::format("restored-{}", i);
    const uint64_t before = busy.acknowledged();
    const auto info = back_up(to);
    const uint64_t after = busy.begun();
    ASSERT_TRUE(info) << info.error().message;
    const auto found = restored(to, directory);
    ASSERT_TRUE(found) << found.error().message;
    const uint64_t last = (*found)["last"];
    EXPECT_GE(last, before);
    EXPECT_LE(last, after);
    EXPECT_EQ(*found, world_after(last));
  }
  EXPECT_GT(busy.snapshots(), 0u);
}

// The same of what is read, often enough to meet every moment in which files are replaced.
TEST_F(Backup, EveryLookAtABusyJournalIsAStateThatExisted) {
  const BusyJournal busy(journal());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  uint64_t looks = 0;
  while (std::chrono::steady_clock::now() < end || busy.snapshots() < 20) {
    const uint64_t before = busy.acknowledged();
    const auto seen = inspect_directory(journal());
    ASSERT_TRUE(seen) << seen.error().message;
    const uint64_t last = seen->replayed.next_batch - 1;  // each step is a batch
    ASSERT_GE(last, before);
    ASSERT_LE(last, busy.begun());
    World found;
    (void)replay_directory(*seen->directory, [&](const Record& record) {
      if (record.number <= last) found.apply(record);
    });
    ASSERT_EQ(found, world_after(last));
    ++looks;
  }
  EXPECT_GT(looks, 0u);
}

TEST_F(Backup, ADirectoryWithoutAJournalHasNone) {
  fs::create_directory(journal());
  const auto seen = inspect_directory(journal());
  ASSERT_FALSE(seen);
  EXPECT_THAT(seen.error().message, HasSubstr("no journal"));
  EXPECT_FALSE(inspect_directory(root_ / "nothing"));
}

TEST_F(Backup, AnUnfinishedWriteIsNotPartOfIt) {
  write_steps(20);
  const auto names = everything(journal());
  const fs::path last = journal() / (names.rbegin()->first == "LOCK" ? std::next(names.rbegin())->first
                                                                     : names.rbegin()->first);
  std::string bytes = content(last);
  put(last, bytes.substr(0, frame_offsets(bytes).back() - 3));
  const auto seen = inspect_directory(journal());
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->replayed.tail.verdict, TailVerdict::torn);
  ASSERT_TRUE(back_up(file()));
  EXPECT_EQ(*restored(file(), root_ / "new"), world_after(19));
}

TEST_F(Backup, OfADamagedJournalIsRefusedWithFileAndByte) {
  write_steps(20);
  std::string bytes = content(journal() / kFirstLog);
  const uint64_t second = frame_offsets(bytes)[1];
  bytes[second + kFrameHeaderBytes + 3] ^= 1;
  put(journal() / kFirstLog, bytes);
  const auto done = back_up(file());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr(fmt::format("{} at byte {}", kFirstLog, second)));
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(Backup, WhereNothingMayBeLookedAtIsAnErrorAndNothingThrown) {
  write_steps(3);
  const fs::path nowhere = root_ / std::string(300, 'x');
  const auto done = back_up(nowhere);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("cannot create"));
}

TEST_F(Backup, AFileThatIsThereIsNotOverwritten) {
  write_steps(3);
  put(file(), "precious");
  EXPECT_FALSE(back_up(file()));
  EXPECT_EQ(content(file()), "precious");
}

TEST_F(Backup, IsNotRestoredIntoADirectoryThatHasAnything) {
  write_steps(3);
  ASSERT_TRUE(back_up(file()));
  fs::create_directory(root_ / "used");
  put(root_ / "used" / "note", "mine");
  const auto done = restore_backup(file(), root_ / "used");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("is not empty"));
  EXPECT_EQ(everything(root_ / "used").size(), 1u);
  fs::create_directory(root_ / "empty");
  EXPECT_TRUE(restore_backup(file(), root_ / "empty"));
}

TEST_F(Backup, EveryDamagedByteIsSeenAndNothingIsLeftBehind) {
  write_steps(4);
  ASSERT_TRUE(back_up(file()));
  const std::string good = content(file());
  const fs::path bad = root_ / "bad.tar";
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); at += 3) {
    std::string bytes = good;
    bytes[at] ^= 0x20;
    put(bad, bytes);
    const auto seen = inspect_backup(bad);
    if (!seen) {
      ++refused;
      continue;
    }
    // Padding between files, which nobody reads: then nothing is lost.
    World found;
    ASSERT_TRUE(replay_directory(*seen->directory, [&](const Record& record) { found.apply(record); }));
    EXPECT_EQ(found, world_after(4)) << at;
  }
  EXPECT_GT(refused, good.size() / 10);
  for (const size_t size : {size_t(0), size_t(100), size_t(512), good.size() / 2, good.size() - 2000}) {
    put(bad, good.substr(0, size));
    EXPECT_FALSE(restore_backup(bad, root_ / "new")) << size;
    EXPECT_FALSE(fs::exists(root_ / "new"));
  }
}

// A backup with another list of files; its checksums are right.
std::string with_manifest(const std::string& backup, const std::string& from, const std::string& to) {
  const auto entry = tar::parse_header(backup);
  std::string lines = backup.substr(tar::kBlock, entry->size);
  lines.resize(lines.rfind("checksum "));
  lines.replace(lines.find(from), from.size(), to);
  lines += fmt::format("checksum {:016x}\n", xxh3_64(lines));
  std::string out = tar::make_header("MANIFEST", lines.size(), 0) + lines;
  out.resize(out.size() + tar::padding(lines.size()), '\0');
  return out + backup.substr(tar::kBlock + entry->size + tar::padding(entry->size));
}

TEST_F(Backup, RefusesWhatItDoesNotKnow) {
  write_steps(4);
  ASSERT_TRUE(back_up(file()));
  const std::string good = content(file());
  const auto refusal = [&](const std::string& bytes) -> std::string {
    put(root_ / "other.tar", bytes);
    const auto done = restore_backup(root_ / "other.tar", root_ / "new");
    return done ? "restored" : done.error().message;
  };
  EXPECT_THAT(refusal(with_manifest(good, "turnstile-backup 1", "turnstile-backup 2")),
              HasSubstr("a backup of version 2, this program knows 1"));
  EXPECT_THAT(refusal(with_manifest(good, "records", "compression zstd\nrecords")),
              HasSubstr("does not know, 'compression"));
  EXPECT_THAT(refusal(with_manifest(good, "records 8", "records 9")), HasSubstr("does not have the batches"));
  EXPECT_THAT(refusal(with_manifest(good, kFirstLog, "log-00000000000000000002")),
              HasSubstr("not those of its list"));
  EXPECT_THAT(refusal("a text that is no tar file"), HasSubstr("not a backup of Turnstile"));
  EXPECT_THAT(refusal(tar::make_header("hello", 0, 0) + std::string(1024, '\0')),
              HasSubstr("not a backup of Turnstile"));
  EXPECT_EQ(refusal(good), "restored");
}

TEST(Tar, AHeaderIsReadBackAndADamagedOneIsNot) {
  const std::string block = tar::make_header("log-1", 123456, 1'700'000'000);
  ASSERT_EQ(block.size(), tar::kBlock);
  const auto entry = tar::parse_header(block);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->name, "log-1");
  EXPECT_EQ(entry->size, 123456u);
  for (size_t at = 0; at < block.size(); ++at) {
    std::string bad = block;
    bad[at] ^= 1;
    const auto read = tar::parse_header(bad);
    // The sum does not cover the two bytes behind its digits, which mean nothing.
    if (read) {
      EXPECT_THAT(at, ::testing::AllOf(::testing::Ge(154u), ::testing::Le(155u)));
    }
  }
}

}  // namespace
}  // namespace turnstile::testing
