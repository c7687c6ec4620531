// The table is a set of pairs: one row says that one node uses one resource. So adding and releasing touch
// one row, however many nodes there are.
#include "refcount/sqlite_schema.h"

#include <fmt/format.h>

#include <thread>

#include "refcount/errors.h"
#include "refcount/sqlite_storage.h"

namespace turnstile::refcount {
namespace {

constexpr int64_t kApplicationId = 0x54524643;  // "TRFC", so that file(1) and we know it again

enum class Owner { nobody, us };

// To be called in a transaction: another process that is just creating the table must be seen before or
// after.
Expected<Owner> owner_of(SqliteConnection& connection) {
  const auto id = connection.query_integer("PRAGMA application_id");
  if (!id) return std::unexpected(id.error());
  const auto version = connection.query_integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  const auto tables = connection.query_integer("SELECT count(*) FROM sqlite_schema");
  if (!tables) return std::unexpected(tables.error());
  if (*id == 0 && *version == 0 && *tables == 0) return Owner::nobody;
  if (*id != kApplicationId)
    return storage_error(
        fmt::format("{} is a database of another program: name another file", connection.path()));
  if (*version != kRefCountSchemaVersion)
    return storage_error(
        fmt::format("the database {} has version {} and this program knows {}: use a newer program",
                    connection.path(), *version, kRefCountSchemaVersion));
  return Owner::us;
}

Expected<void> create_tables(SqliteConnection& connection) {
  const std::string marks[] = {
      "CREATE TABLE reference (resource BLOB NOT NULL, node BLOB NOT NULL, PRIMARY KEY (resource, node)) "
      "WITHOUT ROWID, STRICT",
      fmt::format("PRAGMA application_id = {}", kApplicationId),
      fmt::format("PRAGMA user_version = {}", kRefCountSchemaVersion)};
  for (const std::string& sql : marks)
    if (auto done = connection.execute(sql); !done) return done;
  return connection.execute("COMMIT");
}

Expected<Owner> look(SqliteConnection& connection) {
  if (auto begun = connection.execute("BEGIN"); !begun) return std::unexpected(begun.error());
  const SqliteRollBack roll_back{connection};
  return owner_of(connection);
}

Expected<void> create_if_empty(SqliteConnection& connection) {
  if (auto begun = connection.execute("BEGIN IMMEDIATE"); !begun) return begun;
  const SqliteRollBack roll_back{connection};
  // Looked at again: another process may have been faster.
  const auto owner = owner_of(connection);
  if (!owner) return std::unexpected(owner.error());
  return *owner == Owner::nobody ? create_tables(connection) : Expected<void>{};
}

// Changing to WAL needs the database alone, and does not wait for it as other calls do.
Expected<void> set_wal_mode(SqliteConnection& connection, std::chrono::milliseconds busy_timeout) {
  const auto until = std::chrono::steady_clock::now() + busy_timeout;
  while (true) {
    const auto mode = connection.query_text("PRAGMA journal_mode = WAL");
    if (mode && *mode == "wal") return {};
    if (mode)
      return storage_error(fmt::format("the database {} cannot be used in WAL mode: put it on a local disk",
                                       connection.path()));
    if (!connection.was_busy() || std::chrono::steady_clock::now() >= until)
      return std::unexpected(mode.error());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Expected<void> prepare_schema(SqliteConnection& connection, std::chrono::milliseconds busy_timeout) {
  const auto owner = look(connection);
  if (!owner) return std::unexpected(owner.error());
  if (sqlite3_db_readonly(connection.handle(), "main") == 1)
    return std::unexpected(connection.explain(SQLITE_READONLY));
  if (auto set = set_wal_mode(connection, busy_timeout); !set) return set;
  // FULL: every commit is synced. WAL's default would lose the last ones in a power cut.
  if (auto set = connection.execute("PRAGMA synchronous = FULL"); !set) return set;
  return *owner == Owner::us ? Expected<void>{} : create_if_empty(connection);
}

}  // namespace turnstile::refcount
