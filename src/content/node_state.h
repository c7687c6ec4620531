// Which blobs this node has: the set that must survive a restart, with their labels.
//
// Other nodes' blobs lie in the same directories; containerd may only be shown those that this node has
// committed or adopted, because it uses what it is shown without telling us.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sync.h"
#include "content/database.h"
#include "content/digest.h"
#include "content/directory.h"
#include "content/timestamp.h"

namespace turnstile::content {

using Labels = std::map<std::string, std::string>;

struct BlobInfo {
  Digest digest;
  int64_t size = 0;
  Timestamp created, updated;
  Labels labels;
};

// A SQLite database, and all of it in memory for reading.
//
// A blob comes in two steps: expect() before its file is, add() when it is this node's. It leaves
// in two: begin_removal() hides it from containerd, finish_removal() forgets it. In between others are told
// (the lock server, the disk); removals() says, after a crash, of which blobs traces may be left. Threads:
// any. A change is on the disk when the call returns. Invariant: what is in memory is what is in the
// database.
class NodeState {
 public:
  // `directory` is made if missing; one process at a time (error unavailable).
  static Outcome<std::unique_ptr<NodeState>> open(const std::string& directory);

  std::optional<BlobInfo> find(const Digest& digest) const;
  std::optional<int64_t> size_of(const Digest& digest) const;  // cheaper
  std::vector<BlobInfo> list() const;
  struct Totals {
    size_t blobs = 0;
    int64_t bytes = 0;
  };
  Totals totals() const;  // of what list() gives

  Outcome<void> expect(const Digest& digest);  // nothing to do if it is known
  Outcome<void> add(const BlobInfo& info);
  // Calls `change` with the labels there are; error not_found. Returns what became of it.
  Outcome<BlobInfo> update(const Digest& digest, const std::function<Outcome<void>(Labels&)>& change);

  Outcome<bool> begin_removal(const Digest& digest);  // false: this node does not have it
  Outcome<void> finish_removal(const Digest& digest);
  std::vector<Digest> removals() const;

 private:
  NodeState(UniqueFd lock, Database database) : lock_(std::move(lock)), database_(std::move(database)) {}
  Outcome<void> load();
  Outcome<void> store(const BlobInfo& info) TS_REQUIRES(writing_);

  struct Row {
    BlobInfo info;
    bool leaving = false;
  };

  // Held while SQLite writes; readers of memory need mutex_ alone and never wait for the disk.
  Mutex writing_;
  UniqueFd lock_;  // of the directory, against a second process
  Database database_ TS_GUARDED_BY(writing_);
  mutable SharedMutex mutex_;
  std::map<Digest, Row> rows_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
