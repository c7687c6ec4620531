// See database.h.
#include "content/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace turnstile::content {
namespace {

std::unexpected<ContentError> failed(sqlite3* connection) {
  const bool full = connection != nullptr && sqlite3_errcode(connection) == SQLITE_FULL;
  return fail(full ? ErrorClass::resource_exhausted : ErrorClass::internal,
              fmt::format("the node's database: {}",
                          connection == nullptr ? "no memory" : sqlite3_errmsg(connection)));
}

}  // namespace

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

Outcome<Database> Database::open(const std::string& path) {
  sqlite3* connection = nullptr;
  const int status = sqlite3_open_v2(
      path.c_str(), &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(connection);
  if (status != SQLITE_OK) return failed(connection);
  return database;
}

Outcome<void> Database::run(const char* sql) {
  if (sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return failed(connection_.get());
  return {};
}

Statement::Statement(Database& database, const char* sql) : connection_(database.connection_.get()) {
  status_ = sqlite3_prepare_v2(connection_, sql, -1, &statement_, nullptr);
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(std::string_view text) {
  if (status_ == SQLITE_OK)
    status_ = sqlite3_bind_text(statement_, ++bound_, text.data(), int(text.size()), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind(int64_t number) {
  if (status_ == SQLITE_OK) status_ = sqlite3_bind_int64(statement_, ++bound_, number);
  return *this;
}

Outcome<bool> Statement::step() {
  if (status_ == SQLITE_OK || status_ == SQLITE_ROW) status_ = sqlite3_step(statement_);
  if (status_ == SQLITE_ROW) return true;
  if (status_ == SQLITE_DONE) return false;
  return failed(connection_);
}

Outcome<void> Statement::run() {
  const Outcome<bool> row = step();
  if (!row) return std::unexpected(row.error());
  return {};
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes == nullptr ? std::string()
                          : std::string(bytes, size_t(sqlite3_column_bytes(statement_, column)));
}

int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_, column); }

}  // namespace turnstile::content
