#include "journal/segment_writer.h"

#include "base/check.h"
#include "base/plant.h"
#include "journal/batch.h"
#include "journal/layout.h"

namespace turnstile {

Result<void> SegmentWriter::create(uint64_t first_batch) {
  auto file = directory_.create(file_name(FileKind::log, first_batch));
  if (!file) return std::unexpected(file.error());
  if (auto done = (*file)->write_at(0, make_file_header(FileKind::log, first_batch)); !done) return done;
  if (auto done = (*file)->sync(); !done) return done;
  if (!planted(Plant::no_directory_sync)) {
    if (auto done = directory_.sync(); !done) return done;
  }
  resume(std::move(*file), first_batch, first_batch, kFileHeaderBytes);
  return {};
}

void SegmentWriter::resume(std::unique_ptr<File> file, uint64_t first_batch, uint64_t next_batch,
                           uint64_t offset) {
  file_ = std::move(file);
  first_batch_ = first_batch;
  next_batch_ = next_batch;
  offset_ = zeroed_end_ = offset;
}

Result<void> SegmentWriter::rotate() {
  if (next_batch_ == first_batch_) return {};
  return create(next_batch_);
}

Result<void> SegmentWriter::write(FrameBuilder& batch, Time time) {
  TS_CHECK(file_ != nullptr, "a journal is recovered before it is written to");
  if (offset_ + batch.frame_size() > options_.segment_bytes) {
    if (auto done = rotate(); !done) return done;
  }
  const std::string_view frame = batch.seal(FrameKind::batch, next_batch_, time, offset_);
  if (auto done = file_->write_at(offset_, frame); !done) return done;
  offset_ += frame.size();
  if (auto done = write_zeros_ahead(); !done) return done;
  if (auto done = sync(); !done) return done;
  ++next_batch_;
  written_.fetch_add(frame.size(), std::memory_order_relaxed);
  return {};
}

Result<void> SegmentWriter::sync() {
  if (planted(Plant::sync_now_and_then) && next_batch_ % 2 == 0) return {};
  Result<void> done = file_->sync();
  return planted(Plant::failed_sync_ignored) ? Result<void>() : done;
}

// With the batch that has reached the end of the zeros, so that it costs no sync of its own.
Result<void> SegmentWriter::write_zeros_ahead() {
  const uint64_t chunk = options_.zero_ahead_bytes;
  if (chunk == 0 || offset_ <= zeroed_end_) return {};
  const uint64_t end = (offset_ / chunk + 1) * chunk;
  if (auto done = file_->write_at(offset_, std::string_view(zeros_).substr(0, end - offset_)); !done)
    return done;
  zeroed_end_ = end;
  return {};
}

}  // namespace turnstile
