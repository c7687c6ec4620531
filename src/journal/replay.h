// Reading a journal's directory from its snapshot to its end, without changing anything: choosing the
// snapshot, replaying the log behind it, and refusing whatever a crash does not explain. What a server does
// about the end of the log is recovery.h; who only looks (inspection.h) needs no more than this.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "journal/file.h"
#include "journal/journal.h"
#include "journal/layout.h"
#include "journal/segment_reader.h"
#include "journal/tail.h"

namespace turnstile {

// A file that was read, as far as it is sound.
struct ReplayedFile {
  FileKind kind{};
  uint64_t first_batch = 0;
  uint64_t bytes = 0;  // up to the end of its last good frame
  uint64_t records = 0;
};

// What was found.
struct Replayed {
  Recovered report;
  uint64_t base = 1;  // the log is replayed from this batch on
  bool has_snapshot = false;
  uint64_t first_batch = 1;  // of the last log file
  uint64_t next_batch = 1;
  uint64_t offset = 0;         // behind the last batch of that file; 0: there is none, or no good header
  uint64_t last_frame_at = 0;  // where that batch begins; 0: the file has none
  Tail tail{};                 // what follows it
  uint64_t log_bytes = 0;      // replayed
  uint64_t snapshot_bytes = 0;
  Time snapshot_time{};
  std::vector<Error> damaged_snapshots;  // passed over, because an older one and the log still do
  std::vector<ReplayedFile> files;       // the snapshot, then the logs
};

// Called before the records of each frame, with the name of its file.
using OnFrame = std::function<void(const std::string& name, const Frame& frame)>;

Result<Replayed> replay_directory(Directory& directory, const Journal::Load& load,
                                  const OnFrame& on_frame = {});

// One snapshot, whole. `load` may be empty: then only frames are checked.
Result<ReplayedFile> check_snapshot(Directory& directory, uint64_t first_batch);

}  // namespace turnstile
