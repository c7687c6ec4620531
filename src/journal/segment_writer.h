// Writing the log: one batch at a time, each synced before the next, in files that are begun anew at a bound.
//
// Batches are written over zeros that were written ahead: a file whose size and blocks do not change is
// synced in half the time (docs/decisions/0010-journal-zero-ahead.md).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/error.h"
#include "journal/file.h"
#include "journal/group_commit.h"
#include "journal/journal.h"

namespace turnstile {

// Not its job: deciding when to write (group_commit.h), or reading (recovery.h).
// Threads: one at a time; written() may be read by any.
// Invariant: next_batch() is one more than the last batch written; everything before offset_ is synced;
// everything behind it is zero. After a failed call no other may follow.
class SegmentWriter final : public BatchStore {
 public:
  SegmentWriter(Directory& directory, const FileJournalOptions& options)
      : directory_(directory), options_(options), zeros_(options.zero_ahead_bytes, '\0') {}

  // Begins a file; its first batch will be `first_batch`. When it returns, header and name are on the disk.
  Result<void> create(uint64_t first_batch);
  // Goes on behind the last batch of a file, which must end there.
  void resume(std::unique_ptr<File> file, uint64_t first_batch, uint64_t next_batch, uint64_t offset);
  // Begins a file for the next batch, unless the current one is still empty.
  Result<void> rotate();

  Result<void> write(FrameBuilder& batch, Time time) override;

  uint64_t next_batch() const { return next_batch_; }
  // Bytes of all batches written in this life.
  uint64_t written() const { return written_.load(std::memory_order_relaxed); }

 private:
  Result<void> write_zeros_ahead();
  Result<void> sync();

  Directory& directory_;
  const FileJournalOptions options_;
  const std::string zeros_;
  std::unique_ptr<File> file_;
  uint64_t first_batch_ = 0;
  uint64_t next_batch_ = 0;
  uint64_t offset_ = 0;      // where the next batch goes
  uint64_t zeroed_end_ = 0;  // the file is zero from offset_ up to here
  std::atomic<uint64_t> written_{0};
};

}  // namespace turnstile
