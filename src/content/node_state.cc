// See node_state.h. A change goes to the database in one transaction, then to memory.
#include "content/node_state.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <filesystem>
#include <random>

#include "base/log.h"

namespace turnstile::content {
namespace {

using refcount::SqliteRollBack;
using refcount::SqliteStatement;
using refcount::SqliteText;
using Database = refcount::SqliteConnection;

constexpr std::chrono::seconds kBusy{5};  // a backup of the database is being taken

// The column was called `leaving`, and was 0 or 1, before there were more stages than two. Version 1 did not
// know kUntold: whether the server had been told was not noted, so its 1 means the same as now.
constexpr int64_t kUntold = 3;  // leaving, and the server has not been told

int64_t column_of(Stage stage, bool may_be_told) {
  return stage == Stage::leaving && !may_be_told ? kUntold : int64_t(stage);
}

constexpr const char* kSchema[] = {
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  // what we have told containerd is there after a power cut, too
    "CREATE TABLE IF NOT EXISTS blobs (digest TEXT PRIMARY KEY, size INTEGER NOT NULL, created_ns INTEGER "
    "NOT "
    "NULL, updated_ns INTEGER NOT NULL, leaving INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS labels (digest TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
    "PRIMARY "
    "KEY (digest, key)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
};

ContentError explain(const Database& database, const ClientError& error) {
  if (database.was_full())
    return {ErrorClass::resource_exhausted,
            "the node's state: " + error.message + ": free some room on the disk of --state"};
  return {ErrorClass::internal, "the node's state: " + error.message};
}

template <class... Values>
Expected<void> run(Database& database, std::string_view sql, const Values&... values) {
  Expected<SqliteStatement> statement = database.prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const Expected<bool> done = statement->bind(values...).step();
  if (!done) return std::unexpected(done.error());
  return {};
}

// Databases of before there was a number have 0, and are of version 1.
constexpr int64_t kStateVersion = 2, kOldestVersion = 1;

Expected<int64_t> read_version(Database& database) {
  const Expected<int64_t> version = database.query_integer("PRAGMA user_version");
  if (!version || *version == 0 || (*version >= kOldestVersion && *version <= kStateVersion)) return version;
  return std::unexpected(ClientError{
      .code = ErrorCode::storage,
      .message = fmt::format("it has version {} and this program knows {}: use the program that wrote it",
                             *version, kStateVersion),
      .reason = {},
      .nodes = {}});
}

// Writes nothing where all is there: a plugin must start on a full disk, too, or nobody can read.
Expected<void> prepare_schema(Database& database) {
  const Expected<int64_t> version = read_version(database);
  if (!version) return std::unexpected(version.error());
  for (const char* sql : kSchema)
    if (Expected<void> done = database.execute(sql); !done) return done;
  if (*version == kStateVersion) return {};
  return database.execute(fmt::format("PRAGMA user_version = {}", kStateVersion));
}

Outcome<std::unique_ptr<Database>> open_database(const std::string& directory) {
  Expected<std::unique_ptr<Database>> database = Database::open(directory + "/node.db", kBusy);
  if (!database) return fail(ErrorClass::internal, database.error().message);
  if (const Expected<void> made = prepare_schema(**database); !made)
    return std::unexpected(explain(**database, made.error()));
  return std::move(*database);
}

}  // namespace

Outcome<std::unique_ptr<NodeState>> NodeState::open(const std::string& directory) {
  const Outcome<Directory> opened = Directory::open_root(directory, true);
  if (!opened) return std::unexpected(opened.error());
  Outcome<UniqueFd> lock = opened->open_file("lock", O_RDWR | O_CREAT, 0600);
  if (!lock) return std::unexpected(lock.error());
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorClass::unavailable, fmt::format("{}: another process uses this directory", directory));
  Reserve reserve(directory + "/reserve");
  Outcome<std::unique_ptr<Database>> database = open_database(directory);
  if (!database && reserve.give_up()) database = open_database(directory);
  if (!database) return std::unexpected(database.error());
  reserve.keep();
  std::unique_ptr<NodeState> state(new NodeState(std::move(*lock), std::move(*database), std::move(reserve)));
  if (const Outcome<void> loaded = state->load(); !loaded) return std::unexpected(loaded.error());
  if (const Outcome<void> loaded = state->load_id(); !loaded) return std::unexpected(loaded.error());
  return state;
}

Outcome<std::unique_ptr<const NodeState>> NodeState::open_to_look(const std::string& directory) {
  const std::string path = directory + "/node.db";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(ErrorClass::not_found, fmt::format("{}: there is no state of a node here", directory));
  Expected<std::unique_ptr<Database>> database = Database::open(path, kBusy);
  if (!database) return fail(ErrorClass::internal, database.error().message);
  (*database)->leave_log_on_close();
  if (const Expected<int64_t> known = read_version(**database); !known)
    return std::unexpected(explain(**database, known.error()));
  if (const Expected<void> set = (*database)->execute("PRAGMA query_only = 1"); !set)
    return std::unexpected(explain(**database, set.error()));
  std::unique_ptr<NodeState> state(new NodeState(UniqueFd(), std::move(*database), Reserve({})));
  if (const Outcome<void> loaded = state->load(); !loaded) return std::unexpected(loaded.error());
  return state;
}

Outcome<void> NodeState::load_id() {
  const Locked writing(writing_);
  {
    Expected<SqliteStatement> found = database_->prepare("SELECT value FROM about WHERE key = 'id'");
    if (!found) return std::unexpected(explain(*database_, found.error()));
    const Expected<bool> row = found->step();
    if (!row) return std::unexpected(explain(*database_, row.error()));
    if (*row) id_ = found->text(0);
  }
  if (!id_.empty()) return {};
  std::random_device random;
  std::string id = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  const Outcome<void> made = write(Room::kept, [&](Database& database) {
    return run(database, "INSERT INTO about (key, value) VALUES ('id', ?)", SqliteText(id));
  });
  if (made) id_ = std::move(id);
  return made;
}

Outcome<void> NodeState::load() {
  const Locked writing(writing_);
  const Locked lock(mutex_);
  const auto each_row = [&](const char* sql, const auto& visit) TS_REQUIRES(writing_) -> Outcome<void> {
    Expected<SqliteStatement> rows = database_->prepare(sql);
    if (!rows) return std::unexpected(explain(*database_, rows.error()));
    Expected<bool> row = false;
    while ((row = rows->step()) && *row) {
      const Outcome<Digest> digest = Digest::parse(rows->text(0));
      if (digest) visit(*digest, *rows);
      if (!digest)
        log_warning("a line of the node's database names no blob", {{"error", digest.error().message}});
    }
    if (!row) return std::unexpected(explain(*database_, row.error()));
    return {};
  };
  std::map<Digest, Row> rows;
  Outcome<void> read =
      each_row("SELECT digest, size, created_ns, updated_ns, leaving FROM blobs",
               [&](const Digest& digest, SqliteStatement& row) {
                 BlobInfo info{digest, row.integer(1), {row.integer(2)}, {row.integer(3)}, {}};
                 const int64_t column = row.integer(4);
                 const Stage stage = column == kUntold ? Stage::leaving : Stage(column);
                 rows.emplace(digest, Row{std::move(info), stage, column == int64_t(Stage::leaving)});
               });
  if (!read) return read;
  read = each_row("SELECT digest, key, value FROM labels", [&](const Digest& digest, SqliteStatement& row) {
    if (const auto found = rows.find(digest); found != rows.end())
      found->second.info.labels[row.blob(1)] = row.blob(2);
  });
  rows_ = std::move(rows);
  return read;
}

std::optional<BlobInfo> NodeState::find(const Digest& digest) const {
  const SharedLocked lock(mutex_);
  const auto found = rows_.find(digest);
  if (found == rows_.end() || found->second.stage != Stage::in_use) return std::nullopt;
  return found->second.info;
}

std::optional<int64_t> NodeState::size_of(const Digest& digest) const {
  const SharedLocked lock(mutex_);
  const auto found = rows_.find(digest);
  if (found == rows_.end() || found->second.stage != Stage::in_use) return std::nullopt;
  return found->second.info.size;
}

std::optional<Stage> NodeState::stage_of(const Digest& digest) const {
  const SharedLocked lock(mutex_);
  const auto found = rows_.find(digest);
  if (found == rows_.end()) return std::nullopt;
  return found->second.stage;
}

std::vector<BlobInfo> NodeState::list() const { return in_stage(Stage::in_use); }

std::vector<BlobInfo> NodeState::in_stage(Stage stage) const {
  const SharedLocked lock(mutex_);
  std::vector<BlobInfo> all;
  for (const auto& [digest, row] : rows_)
    if (row.stage == stage) all.push_back(row.info);
  return all;
}

bool NodeState::has(const Digest& digest) const {
  const std::optional<Stage> stage = stage_of(digest);
  return stage && *stage != Stage::leaving;
}

std::vector<BlobInfo> NodeState::all() const {
  std::vector<BlobInfo> all = in_stage(Stage::in_use);
  std::vector<BlobInfo> kept = in_stage(Stage::kept);
  std::move(kept.begin(), kept.end(), std::back_inserter(all));
  return all;
}

NodeState::Totals NodeState::totals(Stage stage) const {
  const SharedLocked lock(mutex_);
  Totals totals;
  for (const auto& [digest, row] : rows_) {
    if (row.stage != stage) continue;
    ++totals.blobs;
    totals.bytes += row.info.size;
  }
  return totals;
}

bool NodeState::is_empty() const {
  const SharedLocked lock(mutex_);
  return rows_.empty();
}

Outcome<void> NodeState::write(Room room, const std::function<Expected<void>(Database&)>& change) {
  // What the last commit wrote may be lost although SQLite would not say so again.
  if (database_->sync_failed())
    return fail(ErrorClass::internal,
                "the node's state is not written to any more since a sync failed: look after the disk of "
                "--state, then start turnstile-content again");
  Expected<void> done = transact(change);
  if (!done && database_->was_full() && room == Room::kept && reserve_.give_up()) {
    log_warning("the disk of --state is full: the room that was kept for this is used; remove images");
    done = transact(change);
  } else if (done) {
    reserve_.keep();
  }
  if (!done) return std::unexpected(explain(*database_, done.error()));
  return {};
}

Expected<void> NodeState::transact(const std::function<Expected<void>(Database&)>& change) {
  if (Expected<void> begun = database_->execute("BEGIN IMMEDIATE"); !begun) return begun;
  const SqliteRollBack roll_back{*database_};
  Expected<void> done = change(*database_);
  if (done) done = database_->execute("COMMIT");
  return done;
}

Outcome<void> NodeState::write_unsynced(Room room, const std::function<Expected<void>(Database&)>& change) {
  (void)database_->execute("PRAGMA synchronous = NORMAL");
  Outcome<void> done = write(room, change);
  if (const Expected<void> back = database_->execute("PRAGMA synchronous = FULL"); !back && done)
    done = std::unexpected(explain(*database_, back.error()));
  return done;
}

Outcome<void> NodeState::store(const BlobInfo& info) {
  return write(Room::found, [&](Database& database) -> Expected<void> {
    const SqliteText digest{info.digest.text()};
    Expected<void> done = run(database, "INSERT OR REPLACE INTO blobs VALUES (?, ?, ?, ?, 0)", digest,
                              info.size, info.created.ns, info.updated.ns);
    if (done) done = run(database, "DELETE FROM labels WHERE digest = ?", digest);
    for (const auto& [key, value] : info.labels)
      if (done)
        done =
            run(database, "INSERT INTO labels VALUES (?, ?, ?)", digest, SqliteText{key}, SqliteText{value});
    return done;
  });
}

Outcome<bool> NodeState::note(const Digest& digest) {
  const Locked writing(writing_);
  if (stage_of(digest)) return false;
  const Timestamp now = Timestamp::now();
  const Outcome<void> done = write_unsynced(Room::found, [&](Database& database) {
    return run(database, "INSERT INTO blobs VALUES (?, 0, ?, ?, ?)", SqliteText{digest.text()}, now.ns,
               now.ns, kUntold);
  });
  if (!done) return std::unexpected(done.error());
  const Locked lock(mutex_);
  rows_.emplace(digest, Row{{digest, 0, now, now, {}}, Stage::leaving});
  return true;
}

Outcome<void> NodeState::add(const BlobInfo& info) {
  const Locked writing(writing_);
  if (Outcome<void> stored = store(info); !stored) return stored;
  const Locked lock(mutex_);
  rows_.insert_or_assign(info.digest, Row{info, Stage::in_use});
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
  rows_.insert_or_assign(digest, Row{*info, Stage::in_use});
  return *info;
}

Outcome<bool> NodeState::move(const Digest& digest, Stage from, Stage to) {
  const Locked writing(writing_);
  if (stage_of(digest) != from) return false;
  const Timestamp now = Timestamp::now();
  const Outcome<void> done = write(Room::kept, [&](Database& database) {
    return run(database, "UPDATE blobs SET leaving = ?, updated_ns = ? WHERE digest = ?",
               column_of(to, false), now.ns, SqliteText{digest.text()});
  });
  if (!done) return std::unexpected(done.error());
  const Locked lock(mutex_);
  Row& row = rows_.at(digest);
  row.stage = to;
  row.may_be_told = false;
  row.info.updated = now;
  return true;
}

bool NodeState::may_be_told(const Digest& digest) const {
  const SharedLocked lock(mutex_);
  const auto found = rows_.find(digest);
  return found != rows_.end() && found->second.may_be_told;
}

Outcome<void> NodeState::set_may_be_told(const Digest& digest, bool told) {
  const Locked writing(writing_);
  if (stage_of(digest) != Stage::leaving || may_be_told(digest) == told) return {};
  const Outcome<void> done = write_unsynced(Room::kept, [&](Database& database) {
    return run(database, "UPDATE blobs SET leaving = ? WHERE digest = ?", column_of(Stage::leaving, told),
               SqliteText{digest.text()});
  });
  if (!done) return done;
  const Locked lock(mutex_);
  rows_.at(digest).may_be_told = told;
  return {};
}

Outcome<void> NodeState::forget(const Digest& digest) {
  const Locked writing(writing_);
  if (stage_of(digest) != Stage::leaving) return {};  // in use again in the meantime: then it stays
  const Outcome<void> done = write_unsynced(Room::kept, [&](Database& database) {
    const SqliteText text{digest.text()};
    Expected<void> gone = run(database, "DELETE FROM labels WHERE digest = ?", text);
    if (gone) gone = run(database, "DELETE FROM blobs WHERE digest = ?", text);
    return gone;
  });
  if (!done) return done;
  const Locked lock(mutex_);
  rows_.erase(digest);
  return {};
}

}  // namespace turnstile::content
