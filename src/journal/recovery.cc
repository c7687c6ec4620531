#include "journal/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/log.h"
#include "journal/batch.h"
#include "journal/layout.h"
#include "journal/record_codec.h"
#include "journal/segment_reader.h"
#include "journal/tail.h"
#include "journal/wire.h"

namespace turnstile {
namespace {

constexpr std::string_view kAdvice = "Nothing was changed. Restore the directory from a backup";

std::unexpected<Error> refuse(const std::string& path, uint64_t offset, std::string_view what,
                              std::string_view advice = kAdvice) {
  return fail(fmt::format("journal file {} at byte {}: {}. {}.", path, offset, what, advice));
}

// Reads one directory once. The members are what has been found so far.
class Recovery {
 public:
  Recovery(Directory& directory, const Journal::Load& load) : directory_(directory), load_(load) {}

  Result<LogEnd> run();

 private:
  enum class Use { verify, load };

  Result<void> choose_snapshot();
  Result<void> read_snapshot(uint64_t first_batch, Use use);
  Result<void> check_snapshot_end(const Frame& frame, uint64_t total, const std::string& path);
  Result<void> check_chain();
  Result<void> read_log(uint64_t first_batch, bool last);
  Result<void> end_log(SegmentReader& reader, File& file, uint64_t first_batch, uint64_t last_frame_at,
                       bool last);
  Result<void> make_durable(File& file, uint64_t last_frame_at);
  Result<void> load_frame(const Frame& frame, const std::string& path);

  Directory& directory_;
  const Journal::Load& load_;
  Listing files_;
  bool has_snapshot_ = false;
  std::optional<Error> damaged_snapshot_;
  LogEnd end_;
};

Result<LogEnd> Recovery::run() {
  const auto names = directory_.list();
  if (!names) return std::unexpected(names.error());
  files_ = sort_names(*names);
  if (auto done = choose_snapshot(); !done) return std::unexpected(done.error());
  // Logs before the snapshot are left over from a crash while they were being removed.
  std::erase_if(files_.logs, [&](uint64_t first) { return first < end_.next_batch; });
  if (auto done = check_chain(); !done) return std::unexpected(done.error());
  if (has_snapshot_) {
    if (auto done = read_snapshot(end_.next_batch, Use::load); !done) return std::unexpected(done.error());
  }
  const uint64_t base = end_.next_batch;
  for (const uint64_t first : files_.logs) {
    if (auto done = read_log(first, first == files_.logs.back()); !done) return std::unexpected(done.error());
  }
  // A name that a crash has left in the cache only must not be relied upon before it is on the disk.
  if (auto done = directory_.sync(); !done) return std::unexpected(done.error());
  remove_before(directory_, base);
  return end_;
}

// The newest snapshot that is whole. A damaged one may be passed over if the log still reaches back far
// enough.
Result<void> Recovery::choose_snapshot() {
  for (const uint64_t first : std::views::reverse(files_.snapshots)) {
    if (auto done = read_snapshot(first, Use::verify); done) {
      has_snapshot_ = true;
      end_.next_batch = end_.first_batch = first;
      return {};
    } else {
      log_warning("snapshot is damaged", {{"error", done.error().message}});
      if (!damaged_snapshot_) damaged_snapshot_ = done.error();
    }
  }
  return {};
}

// A log file is begun for the first batch behind every snapshot before the snapshot gets its name.
Result<void> Recovery::check_chain() {
  const bool nothing = !has_snapshot_ && !damaged_snapshot_ && files_.logs.empty();
  if (nothing || (!files_.logs.empty() && files_.logs.front() == end_.next_batch)) return {};
  if (damaged_snapshot_) return std::unexpected(*damaged_snapshot_);
  const std::string path = directory_.path_of(file_name(FileKind::log, end_.next_batch));
  if (files_.logs.empty()) return refuse(path, 0, "this file is missing, and with it acknowledged batches");
  return refuse(path, 0,
                fmt::format("this file is missing, and with it batches {} to {}, or a snapshot behind them",
                            end_.next_batch, files_.logs.front() - 1));
}

Result<void> Recovery::read_snapshot(uint64_t first_batch, Use use) {
  const std::string name = file_name(FileKind::snapshot, first_batch), path = directory_.path_of(name);
  const auto file = directory_.open(name);
  if (!file) return std::unexpected(file.error());
  SegmentReader reader(**file);
  const auto fault = reader.check_header(FileKind::snapshot, first_batch);
  if (!fault) return std::unexpected(fault.error());
  if (*fault) return refuse(path, 0, **fault);
  uint64_t total = 0;
  for (uint64_t number = 1;; ++number) {
    const auto frame = reader.next();
    if (!frame) return std::unexpected(frame.error());
    if (!*frame) return refuse(path, reader.offset(), "the snapshot is damaged or has no end");
    const FrameHeader& header = (*frame)->header;
    if (header.number != number || header.kind == FrameKind::batch)
      return refuse(path, (*frame)->offset, "a part of the snapshot is not where it belongs");
    if (header.kind == FrameKind::snapshot_end) {
      if (use == Use::load) end_.snapshot_bytes = reader.offset();
      return check_snapshot_end(**frame, total, path);
    }
    total += header.records;
    if (use == Use::verify) continue;
    if (auto done = load_frame(**frame, path); !done) return done;
    end_.report.snapshot_records += header.records;
  }
}

Result<void> Recovery::check_snapshot_end(const Frame& frame, uint64_t total, const std::string& path) {
  uint64_t expected = 0;
  wire::Reader payload(frame.payload);
  if (payload.take_fixed(expected) && expected == total) {
    end_.report.latest = std::max(end_.report.latest, frame.header.time);
    return {};
  }
  return refuse(path, frame.offset,
                fmt::format("the snapshot has {} records and should have {}", total, expected));
}

Result<void> Recovery::read_log(uint64_t first_batch, bool last) {
  const std::string name = file_name(FileKind::log, first_batch), path = directory_.path_of(name);
  if (first_batch != end_.next_batch)
    return refuse(path, 0,
                  fmt::format("it begins with batch {} although {} is next: batches are missing at the end "
                              "of the file before it, {}, at byte {}",
                              first_batch, end_.next_batch,
                              directory_.path_of(file_name(FileKind::log, end_.first_batch)), end_.offset));
  end_.first_batch = first_batch;
  const auto file = directory_.open(name);
  if (!file) return std::unexpected(file.error());
  SegmentReader reader(**file);
  const auto fault = reader.check_header(FileKind::log, first_batch);
  if (!fault) return std::unexpected(fault.error());
  if (*fault) {
    const auto rest = reader.rest();
    if (!rest) return std::unexpected(rest.error());
    if (!last || judge_tail(*rest, reader.offset(), first_batch).verdict != TailVerdict::end)
      return refuse(path, 0, **fault);
    end_.offset = 0;  // a crash came while the file was being begun: it is made anew
    return {};
  }
  uint64_t last_frame_at = 0;
  for (;;) {
    const auto frame = reader.next();
    if (!frame) return std::unexpected(frame.error());
    if (!*frame) return end_log(reader, **file, first_batch, last_frame_at, last);
    const FrameHeader& header = (*frame)->header;
    if (header.kind != FrameKind::batch || header.number != end_.next_batch)
      return refuse(path, (*frame)->offset,
                    fmt::format("batch {} is here although {} is next", header.number, end_.next_batch));
    if (auto done = load_frame(**frame, path); !done) return done;
    ++end_.next_batch;
    ++end_.report.batches;
    end_.log_bytes += frame_bytes(header);
    last_frame_at = (*frame)->offset;
  }
}

Result<void> Recovery::end_log(SegmentReader& reader, File& file, uint64_t first_batch,
                               uint64_t last_frame_at, bool last) {
  const std::string path = directory_.path_of(file_name(FileKind::log, first_batch));
  const auto rest = reader.rest();
  if (!rest) return std::unexpected(rest.error());
  const Tail tail = judge_tail(*rest, reader.offset(), end_.next_batch);
  end_.offset = reader.offset();
  if (tail.verdict == TailVerdict::damaged)
    return refuse(
        path, reader.offset(), tail.why,
        "An acknowledged batch may be lost. Nothing was changed. Restore the directory from a backup; to "
        "accept the loss of everything from there on, cut the file at that byte and remove later ones");
  if (!last) {
    if (tail.verdict == TailVerdict::end) return {};
    return refuse(path, reader.offset(), tail.why + ", although a later log file exists");
  }
  if (tail.verdict == TailVerdict::torn) {
    end_.report.cut_torn_tail = true;
    end_.report.cut_file = path;
    end_.report.cut_at = reader.offset();
  }
  // An empty file is made anew by the writer.
  if (last_frame_at == 0 && tail.verdict == TailVerdict::end) {
    end_.offset = 0;
    return {};
  }
  if (auto done = file.truncate(reader.offset()); !done) return done;
  return make_durable(file, last_frame_at);
}

// The last batch may be in the cache only: its sync may never have come, or have failed and left a clean page
// behind. What was loaded will be told to clients, so it is written once more and synced before anybody is
// answered.
Result<void> Recovery::make_durable(File& file, uint64_t last_frame_at) {
  if (last_frame_at != 0) {
    std::string frame(size_t(end_.offset - last_frame_at), '\0');
    const auto got = file.read_at(last_frame_at, frame);
    if (!got) return std::unexpected(got.error());
    const auto header = parse_frame_header(frame);
    if (*got != frame.size() || !header || frame_bytes(*header) != frame.size() ||
        !payload_is_sound(*header, frame))
      return fail(
          "the last batch of the journal reads differently the second time: the disk cannot be trusted");
    if (auto done = file.write_at(last_frame_at, frame); !done) return done;
  }
  return file.sync();
}

Result<void> Recovery::load_frame(const Frame& frame, const std::string& path) {
  std::string_view bytes = frame.payload;
  ReadTexts last;
  Record record;
  for (uint32_t i = 0; i < frame.header.records; ++i) {
    if (!take_record(bytes, record, last))
      return refuse(path, frame.offset + kFrameHeaderBytes + (frame.payload.size() - bytes.size()),
                    "this is not a record that the program knows, although the checksum is right",
                    "Use the version of the program that wrote it");
    load_(record);
  }
  if (!bytes.empty())
    return refuse(path, frame.offset, "there are bytes behind the last record of this batch");
  end_.report.records += frame.header.records;
  end_.report.latest = std::max(end_.report.latest, frame.header.time);
  return {};
}

}  // namespace

Result<LogEnd> recover_directory(Directory& directory, const Journal::Load& load) {
  return Recovery(directory, load).run();
}

void remove_before(Directory& directory, uint64_t first_batch) {
  const auto names = directory.list();
  if (!names) return log_warning("old journal files were not removed", {{"error", names.error().message}});
  const Listing files = sort_names(*names);
  std::vector<std::string> old = files.temporaries;
  for (const uint64_t first : files.snapshots)
    if (first < first_batch) old.push_back(file_name(FileKind::snapshot, first));
  for (const uint64_t first : files.logs)
    if (first < first_batch) old.push_back(file_name(FileKind::log, first));
  for (const std::string& name : old) {
    if (auto done = directory.remove(name); !done)
      log_warning("old journal file was not removed", {{"error", done.error().message}});
  }
}

}  // namespace turnstile
