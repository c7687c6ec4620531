// See node_state.h. A change goes to the database in one transaction, then to memory.
#include "content/node_state.h"

#include <fmt/format.h>
#include <sys/file.h>

#include "base/log.h"

namespace turnstile::content {
namespace {

// FULL: what we have told containerd is there after a power cut, too.
constexpr const char* kSchema = R"(
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS blobs (
    digest TEXT PRIMARY KEY, size INTEGER NOT NULL, created_ns INTEGER NOT NULL, updated_ns INTEGER NOT NULL,
    leaving INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS labels (
    digest TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (digest, key)) WITHOUT ROWID;
)";

// Undone when it goes, unless it was committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {
    begun_ = database_.run("BEGIN IMMEDIATE");
  }
  ~Transaction() {
    if (begun_) (void)database_.run("ROLLBACK");
  }
  const Outcome<void>& begun() const { return begun_; }
  Outcome<void> commit() {
    Outcome<void> done = database_.run("COMMIT");
    if (done) begun_ = fail(ErrorClass::internal, "committed");
    return done;
  }

 private:
  Database& database_;
  Outcome<void> begun_;
};

}  // namespace

Outcome<std::unique_ptr<NodeState>> NodeState::open(const std::string& directory) {
  const Outcome<Directory> opened = Directory::open_root(directory, true);
  if (!opened) return std::unexpected(opened.error());
  Outcome<UniqueFd> lock = opened->open_file("lock", O_RDWR | O_CREAT, 0600);
  if (!lock) return std::unexpected(lock.error());
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorClass::unavailable, fmt::format("{}: another process uses this directory", directory));
  Outcome<Database> database = Database::open(directory + "/node.db");
  if (!database) return std::unexpected(database.error());
  if (const Outcome<void> made = database->run(kSchema); !made) return std::unexpected(made.error());
  std::unique_ptr<NodeState> state(new NodeState(std::move(*lock), std::move(*database)));
  if (const Outcome<void> loaded = state->load(); !loaded) return std::unexpected(loaded.error());
  return state;
}

Outcome<void> NodeState::load() {
  const Locked writing(writing_);
  const Locked lock(mutex_);
  Statement blobs(database_, "SELECT digest, size, created_ns, updated_ns, leaving FROM blobs");
  Outcome<bool> row = false;
  while ((row = blobs.step()) && *row) {
    const Outcome<Digest> digest = Digest::parse(blobs.text(0));
    if (!digest) {
      log_warning("a line of the node's database names no blob", {{"error", digest.error().message}});
      continue;
    }
    BlobInfo info{*digest, blobs.number(1), {blobs.number(2)}, {blobs.number(3)}, {}};
    rows_.emplace(*digest, Row{std::move(info), blobs.number(4) != 0});
  }
  if (!row) return std::unexpected(row.error());
  Statement labels(database_, "SELECT digest, key, value FROM labels");
  while ((row = labels.step()) && *row) {
    const Outcome<Digest> digest = Digest::parse(labels.text(0));
    const auto found = digest ? rows_.find(*digest) : rows_.end();
    if (found != rows_.end()) found->second.info.labels[labels.text(1)] = labels.text(2);
  }
  if (!row) return std::unexpected(row.error());
  return {};
}

std::optional<BlobInfo> NodeState::find(const Digest& digest) const {
  const SharedLocked lock(mutex_);
  const auto found = rows_.find(digest);
  if (found == rows_.end() || found->second.leaving) return std::nullopt;
  return found->second.info;
}

std::optional<int64_t> NodeState::size_of(const Digest& digest) const {
  const SharedLocked lock(mutex_);
  const auto found = rows_.find(digest);
  if (found == rows_.end() || found->second.leaving) return std::nullopt;
  return found->second.info.size;
}

std::vector<BlobInfo> NodeState::list() const {
  const SharedLocked lock(mutex_);
  std::vector<BlobInfo> all;
  for (const auto& [digest, row] : rows_)
    if (!row.leaving) all.push_back(row.info);
  return all;
}

NodeState::Totals NodeState::totals() const {
  const SharedLocked lock(mutex_);
  Totals totals;
  for (const auto& [digest, row] : rows_) {
    if (row.leaving) continue;
    ++totals.blobs;
    totals.bytes += row.info.size;
  }
  return totals;
}

std::vector<Digest> NodeState::removals() const {
  const SharedLocked lock(mutex_);
  std::vector<Digest> all;
  for (const auto& [digest, row] : rows_)
    if (row.leaving) all.push_back(digest);
  return all;
}

Outcome<void> NodeState::store(const BlobInfo& info) {
  const std::string& digest = info.digest.text();
  Transaction transaction(database_);
  if (!transaction.begun()) return transaction.begun();
  Statement blob(database_, "INSERT OR REPLACE INTO blobs VALUES (?, ?, ?, ?, 0)");
  blob.bind(digest).bind(info.size).bind(info.created.ns).bind(info.updated.ns);
  if (Outcome<void> done = blob.run(); !done) return done;
  if (Outcome<void> done = Statement(database_, "DELETE FROM labels WHERE digest = ?").bind(digest).run();
      !done)
    return done;
  for (const auto& [key, value] : info.labels) {
    Statement label(database_, "INSERT INTO labels VALUES (?, ?, ?)");
    if (Outcome<void> done = label.bind(digest).bind(key).bind(value).run(); !done) return done;
  }
  return transaction.commit();
}

Outcome<void> NodeState::expect(const Digest& digest) {
  const Locked writing(writing_);
  {
    const SharedLocked lock(mutex_);
    if (rows_.contains(digest)) return {};
  }
  const Timestamp now = Timestamp::now();
  Statement blob(database_, "INSERT INTO blobs VALUES (?, 0, ?, ?, 1)");
  if (Outcome<void> done = blob.bind(digest.text()).bind(now.ns).bind(now.ns).run(); !done) return done;
  const Locked lock(mutex_);
  rows_.emplace(digest, Row{{digest, 0, now, now, {}}, true});
  return {};
}

Outcome<void> NodeState::add(const BlobInfo& info) {
  const Locked writing(writing_);
  if (Outcome<void> stored = store(info); !stored) return stored;
  const Locked lock(mutex_);
  rows_.insert_or_assign(info.digest, Row{info, false});
  return {};
}

Outcome<BlobInfo> NodeState::update(const Digest& digest,
                                    const std::function<Outcome<void>(Labels&)>& change) {
  const Locked writing(writing_);
  std::optional<BlobInfo> info = find(digest);
  if (!info) return fail(ErrorClass::not_found, fmt::format("content {}: not found", digest.text()));
  if (const Outcome<void> changed = change(info->labels); !changed) return std::unexpected(changed.error());
  info->updated = Timestamp::now();
  if (const Outcome<void> stored = store(*info); !stored) return std::unexpected(stored.error());
  const Locked lock(mutex_);
  rows_.insert_or_assign(digest, Row{*info, false});
  return *info;
}

Outcome<bool> NodeState::begin_removal(const Digest& digest) {
  const Locked writing(writing_);
  if (!size_of(digest)) return false;
  Statement hide(database_, "UPDATE blobs SET leaving = 1 WHERE digest = ?");
  if (const Outcome<void> done = hide.bind(digest.text()).run(); !done) return std::unexpected(done.error());
  const Locked lock(mutex_);
  rows_.at(digest).leaving = true;
  return true;
}

Outcome<void> NodeState::finish_removal(const Digest& digest) {
  const Locked writing(writing_);
  {
    // Committed again in the meantime: then it stays.
    const SharedLocked lock(mutex_);
    const auto found = rows_.find(digest);
    if (found == rows_.end() || !found->second.leaving) return {};
  }
  Transaction transaction(database_);
  if (!transaction.begun()) return transaction.begun();
  for (const char* sql : {"DELETE FROM labels WHERE digest = ?", "DELETE FROM blobs WHERE digest = ?"})
    if (Outcome<void> done = Statement(database_, sql).bind(digest.text()).run(); !done) return done;
  if (Outcome<void> done = transaction.commit(); !done) return done;
  const Locked lock(mutex_);
  rows_.erase(digest);
  return {};
}

}  // namespace turnstile::content
