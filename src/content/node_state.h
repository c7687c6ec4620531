// Which blobs this node has, and in which stage of its life each is: the one place where that is persisted.
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
#include "content/digest.h"
#include "content/directory.h"
#include "content/reserve.h"
#include "content/timestamp.h"
#include "refcount/sqlite_connection.h"

namespace turnstile::content {

using Labels = std::map<std::string, std::string>;

struct BlobInfo {
  Digest digest;
  int64_t size = 0;
  Timestamp created, updated;
  Labels labels;
};

// What a restart must know of a blob (docs/decisions/0020 has the whole life). The numbers are on the disk.
enum class Stage : uint8_t {
  in_use = 0,   // containerd was told that it is there
  leaving = 1,  // not, or not any more; traces of this node may be left at the server and on the disk
  kept = 2,     // as in_use to everybody but containerd: nobody here uses it, and it stays for a while
};

// A SQLite database, and all of it in memory for reading.
//
// What is about to leave traces elsewhere (the lock server, the disk) is noted before, as `leaving`: after a
// crash it is cleared away unless it was in use by then. Threads: any. A change is safe from a power cut when
// the call returns, except by note() and forget(), which need not be: without the one a trace may stay,
// without the other it is looked for once more; and by set_may_be_told(): what was on its way to the server
// has arrived when the machine is up again. Invariant: what is in memory is what is in the database.
class NodeState {
 public:
  // `directory` is made if missing; one process at a time (error unavailable).
  static Outcome<std::unique_ptr<NodeState>> open(const std::string& directory);
  // What it was a moment ago, for those that only look, also beside the process that has it open. Error
  // not_found.
  static Outcome<std::unique_ptr<const NodeState>> open_to_look(const std::string& directory);

  // By which it is known elsewhere: made once, by chance. Empty where one only looks.
  const std::string& id() const { return id_; }

  // In use:
  std::optional<BlobInfo> find(const Digest& digest) const;
  std::optional<int64_t> size_of(const Digest& digest) const;  // cheaper
  std::vector<BlobInfo> list() const;
  struct Totals {
    size_t blobs = 0;
    int64_t bytes = 0;
  };
  Totals totals(Stage stage = Stage::in_use) const;
  bool is_empty() const;

  std::optional<Stage> stage_of(const Digest& digest) const;
  // `updated` is, of a kept one, since when.
  std::vector<BlobInfo> in_stage(Stage stage) const;
  // In use or kept: its file must be there.
  bool has(const Digest& digest) const;
  std::vector<BlobInfo> all() const;
  // Whether a leaving one's end may be on its way to the server.
  bool may_be_told(const Digest& digest) const;

  Outcome<bool> note(const Digest& digest);    // absent → leaving; false: there was a line
  Outcome<void> add(const BlobInfo& info);     // any → in use
  Outcome<void> forget(const Digest& digest);  // leaving → absent
  // In use → kept or leaving; kept → leaving. False: it was not, and nothing has changed.
  Outcome<bool> move(const Digest& digest, Stage from, Stage to);
  // Of a leaving one, to be noted before the server is told; nothing else is changed.
  Outcome<void> set_may_be_told(const Digest& digest, bool told);
  // Calls `change` with the labels there are; error not_found. Returns what became of it.
  Outcome<BlobInfo> update(const Digest& digest, const std::function<Outcome<void>(Labels&)>& change);

 private:
  using Database = refcount::SqliteConnection;
  NodeState(UniqueFd lock, std::unique_ptr<Database> database, Reserve reserve)
      : lock_(std::move(lock)), database_(std::move(database)), reserve_(std::move(reserve)) {}
  Outcome<void> load();
  // What may be written into the room that is kept for a full disk: only what ends a use. A pull would take
  // it, fail all the same, and leave nothing for the removal that makes room.
  enum class Room : uint8_t { found, kept };
  // One transaction. Error internal for ever after a sync that failed.
  Outcome<void> write(Room room, const std::function<Expected<void>(Database&)>& change)
      TS_REQUIRES(writing_);
  // The same, but only safe from the death of this process.
  Outcome<void> write_unsynced(Room room, const std::function<Expected<void>(Database&)>& change)
      TS_REQUIRES(writing_);
  Outcome<void> store(const BlobInfo& info) TS_REQUIRES(writing_);

  Expected<void> transact(const std::function<Expected<void>(Database&)>& change) TS_REQUIRES(writing_);
  Outcome<void> load_id();

  struct Row {
    BlobInfo info;
    Stage stage = Stage::in_use;
    bool may_be_told = false;
  };

  // Held while SQLite writes; readers of memory need mutex_ alone and never wait for the disk.
  Mutex writing_;
  std::string id_;
  UniqueFd lock_;  // of the directory, against a second process
  const std::unique_ptr<Database> database_ TS_PT_GUARDED_BY(writing_);
  Reserve reserve_ TS_GUARDED_BY(writing_);
  mutable SharedMutex mutex_;
  std::map<Digest, Row> rows_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
