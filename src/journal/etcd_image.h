// What a standby knows of the store's prefix, kept current, so that a take-over reads only what is new.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "etcd/etcd.h"
#include "journal/etcd_layout.h"
#include "journal/journal.h"

namespace turnstile {

// Reads the snapshot and the log behind it, and gives each of their records once, in order, to whoever builds
// the state from them.
//
// Not its job: deciding who leads, or writing. Time: none of its own.
// Threads: none; guarded by its owner. Memory: what has been read and not been given; of the log that has
// been given only the revisions of its keys.
// Invariant: after refresh(…, Look::all) without doubt, what was given and what load() gives is what etcd had
// at that revision.
class EtcdImage {
 public:
  using Timeout = etcd::Client::Timeout;

  EtcdImage(etcd::Client& client, EtcdKeys keys) : client_(client), keys_(std::move(keys)) {}

  enum class Look : uint8_t {
    new_ones,  // what was read before is taken for what is there still: good enough for a standby
    all,       // every key's revision is compared: for a new leader
  };
  // As of revision `at`; 0: of now. An error leaves what there was, or a part of what is new: the next look
  // goes on there. `within`: the least time that each question has; a page of values has more.
  etcd::Answer<void> refresh(etcd::Revision at, Look look, Timeout within);
  // What has been given is not, or may not be, how the store's state begins: it has been changed since, or
  // the log has gone on behind what was read of it. There is no way back: begin with a new image, and give
  // anew.
  bool in_doubt() const { return in_doubt_; }

  // Of which revision the last refresh was.
  etcd::Revision as_of() const { return as_of_; }
  // Which number the log's next key would have, if nothing is missing.
  uint64_t next_number() const;

  struct End {
    Recovered report;          // of all that was ever given
    uint64_t next_number = 1;  // the first number that is free: what is there from here on must be erased
    // There is something: its first key, as it was when it was made. Empty: there is not.
    etcd::Guard more{};
    uint64_t log_bytes = 0, log_keys = 0, snapshot_bytes = 0;
    std::string generation;  // of the snapshot; empty: there is none
    Time snapshot_time{};
  };
  // Gives what has not been given yet: the snapshot, and of the log what has no gap. An error says what is
  // damaged; then what was given is worth nothing.
  Result<End> load(const Journal::Load& load);

 private:
  struct Kept {
    etcd::Revision created = 0, modified = 0;
    size_t bytes = 0;
    std::string value;  // empty: it has been given
  };
  using Log = std::map<uint64_t, Kept>;

  etcd::Answer<etcd::Revision> read_pointer(etcd::Revision at, Timeout within);
  void take_pointer(const etcd::KeyValue* found);
  etcd::Answer<void> read_chunks(etcd::Revision at, Look look, Timeout within);
  etcd::Answer<void> read_log(etcd::Revision at, Timeout within);
  etcd::Answer<void> forget_changed_log(etcd::Revision at, Timeout within);
  etcd::Answer<void> page(const std::string& begin, const std::string& end, etcd::Revision at, size_t limit,
                          bool keys_only, Timeout within, const std::function<void(etcd::KeyValue&)>& take);

  Result<void> load_snapshot(const Journal::Load& load);
  Result<void> load_log(const Journal::Load& load);
  End end() const;
  // All parts of the batch that begins here; nothing: it is not complete.
  Result<std::optional<std::vector<LogPart>>> whole_batch(Log::const_iterator from) const;

  etcd::Client& client_;
  const EtcdKeys keys_;
  etcd::Revision as_of_ = 0;
  std::optional<SnapshotPointer> pointer_;
  std::string pointer_fault_;  // with a pointer that nobody can read
  etcd::Revision pointer_modified_ = 0;
  std::map<std::string, Kept> chunks_;  // until they are given
  Log log_;

  bool begun_ = false;  // the snapshot has been given, or that there was none,
  uint64_t given_ = 1;  // and the log before this number,
  etcd::Revision given_term_ = 0;
  Recovered report_;
  bool in_doubt_ = false;
};

}  // namespace turnstile
