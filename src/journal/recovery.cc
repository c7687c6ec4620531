#include "journal/recovery.h"

#include "base/log.h"
#include "journal/batch.h"
#include "journal/layout.h"
#include "journal/replay.h"

namespace turnstile {
namespace {

// The last batch may be in the cache only: its sync may never have come, or have failed and left a clean page
// behind. What was loaded will be told to clients, so it is written once more and synced before anybody is
// answered.
Result<void> make_durable(File& file, uint64_t last_frame_at, uint64_t end) {
  if (last_frame_at != 0) {
    std::string frame(size_t(end - last_frame_at), '\0');
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

// Cuts what follows the last batch, a torn write or zeros, off the last file.
Result<void> mend_tail(Directory& directory, const Replayed& read, LogEnd& end) {
  if (read.offset == 0) return {};  // there is no file, or one whose beginning a crash interrupted
  if (read.tail.verdict == TailVerdict::torn) {
    end.report.cut_torn_tail = true;
    end.report.cut_file = directory.path_of(file_name(FileKind::log, read.first_batch));
    end.report.cut_at = read.offset;
  }
  // An empty file is made anew by the writer.
  if (read.last_frame_at == 0 && read.tail.verdict == TailVerdict::end) {
    end.offset = 0;
    return {};
  }
  const auto file = directory.open(file_name(FileKind::log, read.first_batch));
  if (!file) return std::unexpected(file.error());
  if (auto done = (*file)->truncate(read.offset); !done) return done;
  return make_durable(**file, read.last_frame_at, read.offset);
}

}  // namespace

Result<LogEnd> recover_directory(Directory& directory, const Journal::Load& load) {
  const Result<Replayed> read = replay_directory(directory, load);
  if (!read) return std::unexpected(read.error());
  for (const Error& damaged : read->damaged_snapshots)
    log_warning("snapshot is damaged", {{"error", damaged.message}});
  LogEnd end{.report = read->report,
             .first_batch = read->first_batch,
             .next_batch = read->next_batch,
             .offset = read->offset,
             .log_bytes = read->log_bytes,
             .snapshot_bytes = read->snapshot_bytes,
             .snapshot_time = read->snapshot_time};
  if (auto done = mend_tail(directory, *read, end); !done) return std::unexpected(done.error());
  // A name that a crash has left in the cache only must not be relied upon before it is on the disk.
  if (auto done = directory.sync(); !done) return std::unexpected(done.error());
  remove_before(directory, read->base);
  return end;
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
