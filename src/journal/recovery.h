// A journal's directory at the start of a server: it is read (replay.h), a torn tail is cut, and what was
// loaded is made durable once more.
#pragma once

#include <optional>

#include "base/error.h"
#include "journal/file.h"
#include "journal/journal.h"

namespace turnstile {

// Where the log goes on.
struct LogEnd {
  Recovered report;
  uint64_t first_batch = 1;  // of the last log file
  uint64_t next_batch = 1;
  uint64_t offset = 0;     // behind its last batch; 0: there is none, the file must be made (anew)
  uint64_t log_bytes = 0;  // replayed
  uint64_t snapshot_bytes = 0;
  Time snapshot_time{};
};

// Gives every record to `load`. On success the files say exactly what was loaded, durably: a torn tail is
// cut, zeros behind the last batch too, and what is older than the snapshot is removed.
Result<LogEnd> recover_directory(Directory& directory, const Journal::Load& load);

// Removes what a valid snapshot has made unnecessary: logs and snapshots before it, and unfinished snapshots.
// What cannot be removed is left for the next time.
void remove_before(Directory& directory, uint64_t first_batch);

}  // namespace turnstile
