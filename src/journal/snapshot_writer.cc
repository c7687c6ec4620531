#include "journal/snapshot_writer.h"

#include "journal/layout.h"

namespace turnstile {
namespace {

constexpr size_t kPartBytes = 1 << 20;
// One sync of everything at the end would hold up the log's syncs behind it for as long as it takes.
constexpr uint64_t kSyncBytes = 8 << 20;

}  // namespace

void SnapshotWriter::note(const Result<void>& done) {
  if (!done && !error_) error_ = done.error();
}

void SnapshotWriter::open() {
  if (file_ || error_) return;
  auto file = directory_.create(temporary_name(first_batch_));
  if (!file) {
    error_ = file.error();
    return;
  }
  file_ = std::move(*file);
  note(file_->write_at(0, make_file_header(FileKind::snapshot, first_batch_)));
  offset_ = kFileHeaderBytes;
}

void SnapshotWriter::add(const Record& record) {
  if (error_) return;
  part_.add(record);
  ++records_;
  if (part_.payload_size() >= kPartBytes) write_part(FrameKind::snapshot_part);
}

void SnapshotWriter::write_part(FrameKind kind) {
  open();
  if (error_) return;
  const std::string_view frame = part_.seal(kind, ++parts_, time_, offset_);
  note(file_->write_at(offset_, frame));
  offset_ += frame.size();
  part_.clear();
  if (offset_ - synced_ < kSyncBytes || error_) return;
  note(file_->sync());
  synced_ = offset_;
}

Result<uint64_t> SnapshotWriter::finish() {
  if (part_.records() > 0) write_part(FrameKind::snapshot_part);
  part_.add_total(records_);
  write_part(FrameKind::snapshot_end);
  if (!error_) note(file_->sync());
  if (error_) return std::unexpected(*error_);
  return offset_;
}

}  // namespace turnstile
