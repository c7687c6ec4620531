// SQLite's calls, and its result codes in words.
#include "refcount/sqlite_connection.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"

namespace turnstile::refcount {
namespace {

constexpr int kCheckpointPages = 1000;  // SQLite's own default: 4 MB of log

}  // namespace

void SqliteStatement::bind_one(int index, std::string_view bytes) {
  const int code = sqlite3_bind_blob64(statement_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  TS_CHECK(code == SQLITE_OK || code == SQLITE_TOOBIG || code == SQLITE_NOMEM, "the placeholder exists");
}

void SqliteStatement::bind_one(int index, SqliteText text) {
  const int code = sqlite3_bind_text64(statement_.get(), index, text.text.data(), text.text.size(),
                                       SQLITE_STATIC, SQLITE_UTF8);
  TS_CHECK(code == SQLITE_OK || code == SQLITE_TOOBIG || code == SQLITE_NOMEM, "the placeholder exists");
}

void SqliteStatement::bind_one(int index, int64_t number) {
  const int code = sqlite3_bind_int64(statement_.get(), index, number);
  TS_CHECK(code == SQLITE_OK || code == SQLITE_NOMEM, "the placeholder exists");
}

Expected<bool> SqliteStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  connection_->note(code);
  auto error = connection_->explain(code);
  reset();
  return std::unexpected(std::move(error));
}

std::string SqliteStatement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes ? std::string(static_cast<const char*>(bytes), size_t(size)) : std::string();
}

std::string SqliteStatement::text(int column) const {
  const unsigned char* bytes = sqlite3_column_text(statement_.get(), column);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes)) : std::string();
}

Expected<std::unique_ptr<SqliteConnection>> SqliteConnection::open(const std::string& path,
                                                                   std::chrono::milliseconds busy_timeout) {
  std::unique_ptr<SqliteConnection> made(new SqliteConnection(path, busy_timeout));
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &made->database_, flags, nullptr);
  if (code != SQLITE_OK) return std::unexpected(made->explain(code));
  sqlite3_busy_timeout(made->database_, int(busy_timeout.count()));
  sqlite3_wal_hook(made->database_, &SqliteConnection::after_commit, made.get());
  return made;
}

SqliteConnection::~SqliteConnection() {
  // A checkpoint would sync again what could not be synced, and then throw the log away.
  if (sync_failed_) leave_log_on_close();
  const int code = sqlite3_close(database_);
  TS_CHECK(code == SQLITE_OK, "no statement outlives its connection");
}

// SQLite's own checkpoints keep quiet about a sync that failed; hence this one in their place.
int SqliteConnection::after_commit(void* self, sqlite3* database, const char* name, int pages) {
  if (pages < kCheckpointPages) return SQLITE_OK;
  static_cast<SqliteConnection*>(self)->note(
      sqlite3_wal_checkpoint_v2(database, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr));
  return SQLITE_OK;  // the commit itself is durable
}

void SqliteConnection::note(int code) {
  last_failure_ = code;
  if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC) sync_failed_ = true;
}

void SqliteConnection::leave_log_on_close() {
  sqlite3_db_config(database_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Expected<SqliteStatement> SqliteConnection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_, sql.data(), int(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return std::unexpected(explain(code));
  return SqliteStatement(*this, statement);
}

Expected<void> SqliteConnection::execute(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  while (true) {
    const auto row = statement->step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
  }
}

Expected<int64_t> SqliteConnection::query_integer(std::string_view sql) {
  auto text = query_text(sql);
  if (!text) return std::unexpected(text.error());
  return std::strtoll(text->c_str(), nullptr, 10);
}

Expected<std::string> SqliteConnection::query_text(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const auto row = statement->step();
  if (!row) return std::unexpected(row.error());
  return *row ? statement->text(0) : std::string();
}

ClientError SqliteConnection::explain(int code) const {
  const std::string detail = database_ ? sqlite3_errmsg(database_) : sqlite3_errstr(code);
  // Kept by SQLite from whatever call to the system failed last, so it means something only with these two.
  const bool from_system = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_IOERR;
  const int system_code = database_ && from_system ? sqlite3_system_errno(database_) : 0;
  const std::string cause = system_code != 0 ? std::strerror(system_code) : detail;
  std::string message;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      message = fmt::format(
          "another process keeps the database {} locked for longer than {} ms: look at what it does, and try "
          "again",
          path_, busy_timeout_.count());
      break;
    case SQLITE_NOTADB:
      message = fmt::format("{} is not a SQLite database: name another file", path_);
      break;
    case SQLITE_CORRUPT:
      message = fmt::format("the database {} is damaged ({}): restore it from a backup", path_, detail);
      break;
    case SQLITE_CANTOPEN:
      message = fmt::format("cannot open the database {}: {}; its directory must exist and be writable",
                            path_, cause);
      break;
    case SQLITE_READONLY:
      message =
          fmt::format("cannot write to the database {}: the file and its directory must be writable", path_);
      break;
    case SQLITE_FULL:
      message = fmt::format("cannot write to the database {}: the disk is full", path_);
      break;
    default:
      message = fmt::format("cannot use the database {}: {} (SQLite's code {})", path_, cause, code);
  }
  return {ErrorCode::storage, std::move(message), {}, {}};
}

}  // namespace turnstile::refcount
