// The journal: where facts become durable before anything that depends on them leaves the server (S31).
//
// The interface is shared by all media: memory (nothing is kept), a directory of files, later etcd. What a
// journal stores is a sequence of batches of records plus a snapshot; docs/journal-format.md has the bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "engine/effects.h"

namespace turnstile {

// What recover() found, for the log line of a start and for the clock.
struct Recovered {
  uint64_t records = 0;           // given to `load`, those of the snapshot included
  uint64_t snapshot_records = 0;  // of these, from the snapshot
  uint64_t batches = 0;           // replayed from the log
  Time latest{};                  // the latest time stamp seen: the clock must not start before it
  bool cut_torn_tail = false;     // the last write had been interrupted by a crash; nobody had been answered
  std::string cut_file;           // with cut_torn_tail: where,
  uint64_t cut_at = 0;            // and the size the file has now
};

// How much a journal has on its medium, for metrics.
struct JournalFigures {
  uint64_t log_bytes = 0;       // of batches behind the last snapshot: what a restart replays
  uint64_t snapshot_bytes = 0;  // of the last snapshot; 0: there is none
  Time snapshot_time{};         // of the latest step that it may have left to the log; with a snapshot only
};

// Takes the records of each step in order, makes them durable many at a time, and says how far it has come.
//
// Not its job: knowing what a record means, or holding back answers (the gate does, by sequence numbers).
// Time: comes with append() and never goes back; the journal reads no clock.
// Threads: recover() and start() once, before all others; then append(), durable(), overloaded() and
// wants_snapshot()
//   by any thread, snapshot() by one at a time, stop() by the owner.
// Invariant: durable() only grows, and never past a failed write; nothing failed is tried again (S32).
class Journal {
 public:
  using Recovered = turnstile::Recovered;
  using Load = std::function<void(const Record&)>;
  using Write = std::function<void(const Record&)>;
  using Dump = std::function<void(const Write& write)>;

  virtual ~Journal() = default;

  // Gives every record of the snapshot and then of the log to `load`, in order; views live only during the
  // call. After an error what has been loaded is worthless: the server must not start.
  virtual Result<Recovered> recover(const Load& load) = 0;

  // Begins to accept appends. `on_durable(sequence)` is called on the journal's thread after each batch,
  // never under a lock; `on_failed` once, on the same thread, when the outcome of a write is unknown.
  virtual void start(std::function<void(uint64_t)> on_durable, std::function<void(Error)> on_failed) = 0;

  // Encodes the records of one step into the pending batch, in memory only, so that it may be called under a
  // lock. `last_event`: the id of the latest event so far, which becomes an event_mark at the end of the
  // batch; 0: none. Returns the step's sequence number, from 1, growing by 1; 0 from a journal that keeps no
  // records.
  virtual uint64_t append(std::span<const Record> records, Time now, uint64_t last_event = 0) = 0;

  // Every step up to this one is safe.
  virtual uint64_t durable() const = 0;
  // What tells of the state and changes nothing must wait for this, where a store is shared and another
  // server may have taken it over (S42): a sequence that becomes safe only by a write that begins after the
  // call.
  virtual bool guards_reads() const { return false; }
  virtual uint64_t barrier() { return 0; }
  // Asked wherever something is sent: the right to say it has run out by itself, as a leader's does while it
  // sleeps (S47). None: nobody else can have taken over the store.
  virtual const std::function<bool()>* is_over() const { return nullptr; }
  // False: append() does nothing, and there is nothing to wait for.
  virtual bool keeps_records() const = 0;
  // More is pending than the limit allows: refuse new work (503) until it is false again. append() never
  // blocks.
  virtual bool overloaded() const = 0;

  // Writes every current fact while others go on appending; `dump` must see at least all that was appended
  // before the call. On success the log before it is deleted. An error, also that of a dump that was stopped,
  // leaves the journal as it was, unless on_failed says more.
  virtual Result<void> snapshot(const Dump& dump, std::stop_token stop = {}) = 0;
  // The log has grown enough since the last snapshot for a new one to pay.
  virtual bool wants_snapshot() const = 0;

  // Read by any thread. All zero from a journal that keeps nothing here.
  virtual JournalFigures figures() const { return {}; }

  // Writes what is pending and ends the thread. Later appends never become durable.
  virtual void stop() = 0;
};

struct FileJournalOptions {
  uint64_t segment_bytes = 64 << 20;    // a new log file begins when the next batch would pass this size
  uint64_t zero_ahead_bytes = 1 << 20;  // see docs/decisions/0010-journal-zero-ahead.md; 0: append plainly
  uint64_t snapshot_after_bytes =
      64 << 20;                          // wants_snapshot() beyond this, and twice the last snapshot's size
  size_t most_pending_bytes = 64 << 20;  // overloaded() beyond this
};

std::unique_ptr<Journal> make_memory_journal();

// Creates the directory (mode 0700) if there is none, and locks it: one that another server has open is an
// error.
Result<std::unique_ptr<Journal>> open_file_journal(const std::filesystem::path& directory,
                                                   const FileJournalOptions& options);
// Between the two nobody can open it: what is there is a part of a copy. They return when that is on the
// disk.
Result<void> begin_copy_into(const std::filesystem::path& directory);
Result<void> end_copy_into(const std::filesystem::path& directory);

}  // namespace turnstile
