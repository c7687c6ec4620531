// Reference counts in a SQLite database: for many resources, and for several processes at once.
#include "refcount/sqlite_storage.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "refcount/errors.h"
#include "refcount/grouped_storage.h"
#include "refcount/sqlite_connection.h"
#include "refcount/sqlite_schema.h"

namespace turnstile {

using namespace refcount;

namespace {

constexpr std::string_view kSelectNodes = "SELECT node FROM reference WHERE resource = ?1";
constexpr std::string_view kSelectAll = "SELECT resource, node FROM reference ORDER BY resource, node";
constexpr std::string_view kInsert = "INSERT INTO reference (resource, node) VALUES (?1, ?2)";
constexpr std::string_view kDelete = "DELETE FROM reference WHERE resource = ?1 AND node = ?2";

Expected<ReferenceCount> read_count(SqliteStatement& select, const std::string& resource) {
  ReferenceCount count;
  select.bind(resource);
  while (true) {
    const auto row = select.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return count;
    count.nodes.insert(select.blob(0));
  }
}

// A connection for reading, and its statement.
struct ReadingSide {
  static Expected<ReadingSide> open(const std::string& path, std::chrono::milliseconds busy_timeout,
                                    std::string_view sql) {
    auto connection = SqliteConnection::open(path, busy_timeout);
    if (!connection) return std::unexpected(connection.error());
    (*connection)->leave_log_on_close();
    if (auto set = (*connection)->execute("PRAGMA query_only = ON"); !set)
      return std::unexpected(set.error());
    auto select = (*connection)->prepare(sql);
    if (!select) return std::unexpected(select.error());
    return ReadingSide{std::move(*connection), std::move(*select)};
  }

  std::unique_ptr<SqliteConnection> connection;
  SqliteStatement select;
};

// The connection for writing, with everything it needs for a batch.
//
// Threads: one at a time. Invariant: no transaction is open between two calls of commit().
class WritingSide {
 public:
  static Expected<std::unique_ptr<WritingSide>> open(const std::string& path,
                                                     std::chrono::milliseconds busy_timeout) {
    auto connection = SqliteConnection::open(path, busy_timeout);
    if (!connection) return std::unexpected(connection.error());
    if (auto ready = prepare_schema(**connection, busy_timeout); !ready)
      return std::unexpected(ready.error());
    auto select = (*connection)->prepare(kSelectNodes);
    auto insert = (*connection)->prepare(kInsert);
    auto remove = (*connection)->prepare(kDelete);
    for (const auto* statement : {&select, &insert, &remove})
      if (!*statement) return std::unexpected(statement->error());
    return std::make_unique<WritingSide>(std::move(*connection), std::move(*select), std::move(*insert),
                                         std::move(*remove));
  }
  WritingSide(std::unique_ptr<SqliteConnection> connection, SqliteStatement select, SqliteStatement insert,
              SqliteStatement remove)
      : connection_(std::move(connection)),
        select_(std::move(select)),
        insert_(std::move(insert)),
        remove_(std::move(remove)) {}

  Expected<void> commit(std::span<PendingUpdate* const> batch) {
    if (connection_->sync_failed())
      return storage_error(
          fmt::format("the database {} is not written to any more since a sync failed: look after "
                      "the disk, then open it anew",
                      connection_->path()));
    // IMMEDIATE: what is read is not changed by another process before it is written.
    if (auto begun = connection_->execute("BEGIN IMMEDIATE"); !begun) return begun;
    const SqliteRollBack roll_back{*connection_};
    const auto made = BatchChanges::make(
        batch, [this](const std::string& resource) { return read_count(select_, resource); });
    if (!made) return std::unexpected(made.error());
    for (const auto& [resource, change] : made->changes())
      if (auto written = write(resource, change); !written) return written;
    return connection_->execute("COMMIT");
  }

 private:
  Expected<void> write(const std::string& resource, const BatchChanges::Change& change) {
    const auto& before = change.before.nodes;
    const auto& after = change.after.nodes;
    std::vector<std::string_view> added, removed;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(removed));
    for (std::string_view node : removed)
      if (auto done = remove_.bind(resource, node).step(); !done) return std::unexpected(done.error());
    for (std::string_view node : added)
      if (auto done = insert_.bind(resource, node).step(); !done) return std::unexpected(done.error());
    return {};
  }

  std::unique_ptr<SqliteConnection> connection_;
  SqliteStatement select_, insert_, remove_;
};

// One connection writes and belongs to the one commit() under way (GroupedStorage); one reads, under a mutex,
// so that readers wait for each other but never for a sync; a walk has its own, because it calls back.
// A connection for each thread would be faster for many readers at once, and would need to know when threads
// end.
//
// Threads: any.
class SqliteStorage final : public GroupedStorage {
 public:
  SqliteStorage(std::string path, std::chrono::milliseconds busy_timeout,
                std::unique_ptr<WritingSide> writing, ReadingSide reading)
      : path_(std::move(path)),
        busy_timeout_(busy_timeout),
        writing_(std::move(writing)),
        reading_(std::move(reading)) {}

  Expected<ReferenceCount> get(const std::string& resource) const override {
    if (auto valid = check_resource(resource); !valid) return std::unexpected(valid.error());
    Locked lock(mutex_);
    return read_count(reading_.select, resource);
  }

  Expected<void> for_each(
      const std::function<bool(const std::string&, const ReferenceCount&)>& visit) const override {
    auto walk = ReadingSide::open(path_, busy_timeout_, kSelectAll);
    if (!walk) return std::unexpected(walk.error());
    std::string resource;
    ReferenceCount count;
    while (true) {
      const auto row = walk->select.step();
      if (!row) return std::unexpected(row.error());
      std::string next = *row ? walk->select.blob(0) : std::string();
      if (next != resource) {
        if (!resource.empty() && !visit(resource, count)) return {};
        count.nodes.clear();
        resource = std::move(next);
      }
      if (!*row) return {};
      count.nodes.insert(count.nodes.end(), walk->select.blob(1));
    }
  }

 private:
  Expected<void> commit(std::span<PendingUpdate* const> batch) override { return writing_->commit(batch); }

  const std::string path_;
  const std::chrono::milliseconds busy_timeout_;
  std::unique_ptr<WritingSide> writing_;
  mutable Mutex mutex_;
  mutable ReadingSide reading_ TS_GUARDED_BY(mutex_);
};

}  // namespace

Expected<std::unique_ptr<RefCountStorage>> refcount::open_sqlite_storage_waiting(
    const std::string& path, std::chrono::milliseconds busy_timeout) {
  // SQLite would take these for a temporary database.
  if (path.empty() || path.starts_with(":")) return invalid_error("the path of a database must name a file");
  auto writing = WritingSide::open(path, busy_timeout);
  if (!writing) return std::unexpected(writing.error());
  auto reading = ReadingSide::open(path, busy_timeout, kSelectNodes);
  if (!reading) return std::unexpected(reading.error());
  return std::make_unique<SqliteStorage>(path, busy_timeout, std::move(*writing), std::move(*reading));
}

inline namespace v1 {

Expected<std::unique_ptr<RefCountStorage>> open_sqlite_storage(const std::string& path) {
  return open_sqlite_storage_waiting(path, kSqliteBusyTimeout);
}

}  // namespace v1
}  // namespace turnstile
