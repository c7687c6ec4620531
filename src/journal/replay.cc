#include "journal/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "journal/batch.h"
#include "journal/record_codec.h"
#include "journal/wire.h"

namespace turnstile {
namespace {

constexpr std::string_view kAdvice = "Nothing was changed. Restore the directory from a backup";

std::unexpected<Error> refuse(const std::string& path, uint64_t offset, std::string_view what,
                              std::string_view advice = kAdvice) {
  return fail(fmt::format("journal file {} at byte {}: {}. {}.", path, offset, what, advice));
}

// Reads one directory once. The members are what has been found so far.
class Replay {
 public:
  Replay(Directory& directory, const Journal::Load& load, const OnFrame& on_frame)
      : directory_(directory), load_(load), on_frame_(on_frame) {}

  Result<Replayed> run();

  enum class Use { verify, load };
  Result<ReplayedFile> read_snapshot(uint64_t first_batch, Use use);

 private:
  void choose_snapshot();
  Result<void> check_chain();
  Result<void> check_snapshot_end(const Frame& frame, uint64_t total, const std::string& path, Use use);
  Result<void> read_log(uint64_t first_batch, bool last);
  Result<void> end_log(SegmentReader& reader, const std::string& path, bool last);
  Result<void> load_frame(const std::string& name, const Frame& frame);

  Directory& directory_;
  const Journal::Load& load_;
  const OnFrame& on_frame_;
  Listing names_;
  Replayed end_;
};

Result<Replayed> Replay::run() {
  const auto names = directory_.list();
  if (!names) return std::unexpected(names.error());
  names_ = sort_names(*names);
  choose_snapshot();
  // Logs before the snapshot are left over from a crash while they were being removed.
  std::erase_if(names_.logs, [&](uint64_t first) { return first < end_.next_batch; });
  if (auto done = check_chain(); !done) return std::unexpected(done.error());
  if (end_.has_snapshot) {
    auto read = read_snapshot(end_.next_batch, Use::load);
    if (!read) return std::unexpected(read.error());
    end_.files.push_back(*read);
  }
  for (const uint64_t first : names_.logs) {
    if (auto done = read_log(first, first == names_.logs.back()); !done) return std::unexpected(done.error());
  }
  return end_;
}

// The newest snapshot that is whole. A damaged one may be passed over if the log still reaches back far
// enough.
void Replay::choose_snapshot() {
  for (const uint64_t first : std::views::reverse(names_.snapshots)) {
    if (auto read = read_snapshot(first, Use::verify); read) {
      end_.has_snapshot = true;
      end_.base = end_.next_batch = end_.first_batch = first;
      return;
    } else {
      end_.damaged_snapshots.push_back(read.error());
    }
  }
}

// A log file is begun for the first batch behind every snapshot before the snapshot gets its name.
Result<void> Replay::check_chain() {
  const bool nothing = !end_.has_snapshot && end_.damaged_snapshots.empty() && names_.logs.empty();
  if (nothing || (!names_.logs.empty() && names_.logs.front() == end_.next_batch)) return {};
  if (!end_.damaged_snapshots.empty()) return std::unexpected(end_.damaged_snapshots.front());
  const std::string path = directory_.path_of(file_name(FileKind::log, end_.next_batch));
  if (names_.logs.empty()) return refuse(path, 0, "this file is missing, and with it acknowledged batches");
  return refuse(path, 0,
                fmt::format("this file is missing, and with it batches {} to {}, or a snapshot behind them",
                            end_.next_batch, names_.logs.front() - 1));
}

Result<ReplayedFile> Replay::read_snapshot(uint64_t first_batch, Use use) {
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
      if (auto done = check_snapshot_end(**frame, total, path, use); !done)
        return std::unexpected(done.error());
      if (use == Use::load) end_.snapshot_bytes = reader.offset();
      return ReplayedFile{FileKind::snapshot, first_batch, reader.offset(), total};
    }
    total += header.records;
    if (use == Use::verify) continue;
    if (auto done = load_frame(name, **frame); !done) return std::unexpected(done.error());
    end_.report.snapshot_records += header.records;
  }
}

Result<void> Replay::check_snapshot_end(const Frame& frame, uint64_t total, const std::string& path,
                                        Use use) {
  uint64_t expected = 0;
  wire::Reader payload(frame.payload);
  if (payload.take_fixed(expected) && expected == total) {
    end_.report.latest = std::max(end_.report.latest, frame.header.time);
    if (use == Use::load) end_.snapshot_time = frame.header.time;
    return {};
  }
  return refuse(path, frame.offset,
                fmt::format("the snapshot has {} records and should have {}", total, expected));
}

Result<void> Replay::read_log(uint64_t first_batch, bool last) {
  const std::string name = file_name(FileKind::log, first_batch), path = directory_.path_of(name);
  if (first_batch != end_.next_batch)
    return refuse(path, 0,
                  fmt::format("it begins with batch {} although {} is next: batches are missing at the end "
                              "of the file before it, {}, at byte {}",
                              first_batch, end_.next_batch,
                              directory_.path_of(file_name(FileKind::log, end_.first_batch)), end_.offset));
  end_.first_batch = first_batch;
  end_.last_frame_at = 0;
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
    end_.offset = 0;  // a crash came while the file was being begun
    end_.files.push_back({FileKind::log, first_batch, 0, 0});
    return {};
  }
  const uint64_t records_before = end_.report.records;
  for (;;) {
    const auto frame = reader.next();
    if (!frame) return std::unexpected(frame.error());
    if (!*frame) break;
    const FrameHeader& header = (*frame)->header;
    if (header.kind != FrameKind::batch || header.number != end_.next_batch)
      return refuse(path, (*frame)->offset,
                    fmt::format("batch {} is here although {} is next", header.number, end_.next_batch));
    if (auto done = load_frame(name, **frame); !done) return done;
    ++end_.next_batch;
    ++end_.report.batches;
    end_.log_bytes += frame_bytes(header);
    end_.last_frame_at = (*frame)->offset;
  }
  end_.files.push_back({FileKind::log, first_batch, reader.offset(), end_.report.records - records_before});
  return end_log(reader, path, last);
}

Result<void> Replay::end_log(SegmentReader& reader, const std::string& path, bool last) {
  const auto rest = reader.rest();
  if (!rest) return std::unexpected(rest.error());
  end_.offset = reader.offset();
  end_.tail = judge_tail(*rest, reader.offset(), end_.next_batch);
  if (end_.tail.verdict == TailVerdict::damaged)
    return refuse(
        path, reader.offset(), end_.tail.why,
        "An acknowledged batch may be lost. Nothing was changed. Restore the directory from a backup; to "
        "accept the loss of everything from there on, cut the file at that byte and remove later ones");
  if (!last && end_.tail.verdict != TailVerdict::end)
    return refuse(path, reader.offset(), end_.tail.why + ", although a later log file exists");
  return {};
}

Result<void> Replay::load_frame(const std::string& name, const Frame& frame) {
  if (on_frame_) on_frame_(name, frame);
  std::string_view bytes = frame.payload;
  ReadTexts last;
  Record record;
  for (uint32_t i = 0; i < frame.header.records; ++i) {
    if (!take_record(bytes, record, last))
      return refuse(directory_.path_of(name),
                    frame.offset + kFrameHeaderBytes + (frame.payload.size() - bytes.size()),
                    "this is not a record that the program knows, although the checksum is right",
                    "Use the version of the program that wrote it");
    load_(record);
  }
  if (!bytes.empty())
    return refuse(directory_.path_of(name), frame.offset,
                  "there are bytes behind the last record of this batch");
  end_.report.records += frame.header.records;
  end_.report.latest = std::max(end_.report.latest, frame.header.time);
  return {};
}

}  // namespace

Result<Replayed> replay_directory(Directory& directory, const Journal::Load& load, const OnFrame& on_frame) {
  return Replay(directory, load, on_frame).run();
}

Result<ReplayedFile> check_snapshot(Directory& directory, uint64_t first_batch) {
  return Replay(directory, {}, {}).read_snapshot(first_batch, Replay::Use::verify);
}

}  // namespace turnstile
