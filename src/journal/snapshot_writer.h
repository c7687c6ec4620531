// Writing a snapshot: every fact in frames like those of the log, with an end that says how many there should
// be.
#pragma once

#include <memory>
#include <optional>

#include "base/error.h"
#include "base/time.h"
#include "journal/batch.h"
#include "journal/file.h"

namespace turnstile {

// Writes under a temporary name, which recovery never reads; giving it its real name is the caller's last
// step.
//
// Threads: one. An error is kept and told by finish(), because add() is called from inside the engine's dump.
class SnapshotWriter {
 public:
  // `first_batch`: the log must be replayed from here on. `time`: not before any that the log had until then.
  SnapshotWriter(Directory& directory, uint64_t first_batch, Time time)
      : directory_(directory), first_batch_(first_batch), time_(time) {}

  void add(const Record& record);
  // Writes the end and syncs. Returns the size in bytes.
  Result<uint64_t> finish();

 private:
  void open();
  void write_part(FrameKind kind);
  void note(const Result<void>& done);

  Directory& directory_;
  const uint64_t first_batch_;
  const Time time_;
  std::unique_ptr<File> file_;
  FrameBuilder part_;
  uint64_t parts_ = 0;
  uint64_t records_ = 0;
  uint64_t offset_ = 0;
  uint64_t synced_ = 0;
  std::optional<Error> error_;
};

}  // namespace turnstile
