// The journal in a directory of files: puts recovery, group commit, log and snapshots together.
#include "journal/file_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/unique_fd.h"
#include "journal/group_commit.h"
#include "journal/layout.h"
#include "journal/recovery.h"
#include "journal/segment_writer.h"
#include "journal/snapshot_writer.h"

namespace turnstile {
namespace {

// A snapshot is worth taking when the log is this many times its size: the disk holds at most about four
// times what memory holds, and each fact is written about 1.5 times.
constexpr uint64_t kLogToSnapshot = 2;

// Threads: as for Journal. The log's files belong to the commit thread once it runs; a snapshot's file to its
// caller, who asks the commit thread for the two steps that touch the log (between_batches).
class FileJournal final : public Journal {
 public:
  FileJournal(std::unique_ptr<Directory> directory, const FileJournalOptions& options,
              GroupCommit::Drive drive)
      : options_(options),
        directory_(std::move(directory)),
        log_(*directory_, options),
        commit_(log_, options.most_pending_bytes, drive) {}

  bool turn() { return commit_.turn(); }

  Result<Recovered> recover(const Load& load) override;
  void start(std::function<void(uint64_t)> on_durable, std::function<void(Error)> on_failed) override;

  uint64_t append(std::span<const Record> records, Time now, uint64_t last_event) override {
    return commit_.append(records, now, last_event);
  }
  uint64_t durable() const override { return commit_.durable(); }
  bool keeps_records() const override { return true; }
  bool overloaded() const override { return commit_.overloaded(); }

  Result<void> snapshot(const Dump& dump, std::stop_token stop) override;
  bool wants_snapshot() const override { return log_bytes() > snapshot_at_.load(std::memory_order_relaxed); }
  JournalFigures figures() const override {
    const uint64_t begun_at = snapshot_begun_at_;
    return {.log_bytes = log_bytes() - begun_at,
            .snapshot_bytes = snapshot_bytes_,
            .snapshot_time = snapshot_time_.load()};
  }
  void stop() override { commit_.stop(); }

 private:
  uint64_t log_bytes() const { return recovered_bytes_ + log_.written(); }
  Result<uint64_t> write_snapshot(const Dump& dump, const std::stop_token& stop);
  void expect_next_snapshot(uint64_t log_bytes, uint64_t snapshot_bytes) {
    const uint64_t growth = std::max(options_.snapshot_after_bytes, kLogToSnapshot * snapshot_bytes);
    snapshot_at_.store(log_bytes + growth, std::memory_order_relaxed);
  }

  const FileJournalOptions options_;
  const std::unique_ptr<Directory> directory_;
  SegmentWriter log_;
  Time latest_{};
  bool recovered_ = false;
  uint64_t recovered_bytes_ = 0;             // of the log that recover() has replayed
  std::atomic<uint64_t> snapshot_bytes_{0};  // size of the last snapshot
  std::atomic<Time> snapshot_time_{Time{}};
  std::atomic<uint64_t> snapshot_begun_at_{0};  // log_bytes() when it was begun
  std::atomic<uint64_t> snapshot_at_{0};        // log_bytes() at which the next one is due
  std::atomic<bool> in_snapshot_{false};
  GroupCommit commit_;  // last, so that its thread ends first
};

Result<Recovered> FileJournal::recover(const Load& load) {
  TS_CHECK(!recovered_, "a journal is recovered once");
  const auto end = recover_directory(*directory_, load);
  if (!end) return std::unexpected(end.error());
  if (end->offset == 0) {
    if (auto done = log_.create(end->next_batch); !done) return std::unexpected(done.error());
  } else {
    auto file = directory_->open(file_name(FileKind::log, end->first_batch));
    if (!file) return std::unexpected(file.error());
    log_.resume(std::move(*file), end->first_batch, end->next_batch, end->offset);
  }
  latest_ = end->report.latest;
  recovered_bytes_ = end->log_bytes;
  snapshot_bytes_ = end->snapshot_bytes;
  snapshot_time_ = end->snapshot_time;
  expect_next_snapshot(0, end->snapshot_bytes);
  recovered_ = true;
  return end->report;
}

void FileJournal::start(std::function<void(uint64_t)> on_durable, std::function<void(Error)> on_failed) {
  TS_CHECK(recovered_, "a journal is recovered before it is started");
  commit_.start(latest_, std::move(on_durable), std::move(on_failed));
}

Result<void> FileJournal::snapshot(const Dump& dump, std::stop_token stop) {
  if (in_snapshot_.exchange(true)) return fail("a snapshot is already being taken");
  const uint64_t begun_at = log_bytes();
  const auto size = write_snapshot(dump, stop);
  if (size) {
    snapshot_bytes_ = *size;
    snapshot_begun_at_ = begun_at;
  }
  // After an error, too: another attempt is due when the log has grown as much again.
  expect_next_snapshot(begun_at, snapshot_bytes_);
  in_snapshot_ = false;
  if (!size) return std::unexpected(size.error());
  return {};
}

Result<uint64_t> FileJournal::write_snapshot(const Dump& dump, const std::stop_token& stop) {
  // What is appended from now on, or is pending, comes with a batch behind this one; what came with an
  // earlier batch is in memory already, where the dump sees it.
  uint64_t first_batch = 0;
  auto rotated = commit_.between_batches([&]() -> Result<void> {
    if (auto done = log_.rotate(); !done) return done;
    first_batch = log_.next_batch();
    return {};
  });
  if (!rotated) return std::unexpected(rotated.error());

  const Time time = commit_.latest_time();
  SnapshotWriter writer(*directory_, first_batch, time);
  dump([&](const Record& record) {
    if (!stop.stop_requested()) writer.add(record);
  });
  const Result<uint64_t> size = stop.stop_requested() ? fail("the server stops") : writer.finish();
  if (!size) {
    (void)directory_->remove(temporary_name(first_batch));  // else the next start does
    return size;
  }
  // The dump may have seen steps that are not durable yet, and the snapshot must not tell of half of them
  // after a crash: it gets its name when they are. From here on a failure leaves it unknown which names the
  // directory has, so it ends the journal (S32).
  auto named = commit_.between_batches([&]() -> Result<void> {
    if (auto done =
            directory_->rename(temporary_name(first_batch), file_name(FileKind::snapshot, first_batch));
        !done)
      return done;
    return directory_->sync();
  });
  if (!named) return std::unexpected(named.error());
  snapshot_time_ = time;
  remove_before(*directory_, first_batch);
  return size;
}

}  // namespace

std::unique_ptr<Journal> make_file_journal(std::unique_ptr<Directory> directory,
                                           const FileJournalOptions& options,
                                           std::function<bool()>* by_hand) {
  using Drive = GroupCommit::Drive;
  auto journal = std::make_unique<FileJournal>(std::move(directory), options,
                                               by_hand != nullptr ? Drive::by_hand : Drive::by_thread);
  if (by_hand != nullptr) *by_hand = [made = journal.get()] { return made->turn(); };
  return journal;
}

namespace {

constexpr const char* kCopyMark = "copying";  // in a directory that is being copied into

Result<void> sync_names(const std::filesystem::path& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return system_error("sync", directory.string());
  return {};
}

}  // namespace

Result<void> begin_copy_into(const std::filesystem::path& directory) {
  const std::string mark = (directory / kCopyMark).string();
  const UniqueFd fd(::open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return system_error("write", mark);
  return sync_names(directory);
}

Result<void> end_copy_into(const std::filesystem::path& directory) {
  const std::string mark = (directory / kCopyMark).string();
  if (::unlink(mark.c_str()) != 0) return system_error("remove", mark);
  return sync_names(directory);
}

Result<std::unique_ptr<Journal>> open_file_journal(const std::filesystem::path& directory,
                                                   const FileJournalOptions& options) {
  auto opened = open_directory(directory);
  if (!opened) return std::unexpected(opened.error());
  std::error_code none;
  if (std::filesystem::exists(directory / kCopyMark, none))
    return fail(fmt::format(
        "{} has only a part of a store: copy-store is at work, or did not come to its end. Remove the "
        "directory and copy again.",
        directory.string()));
  return make_file_journal(std::move(*opened), options);
}

}  // namespace turnstile
