// The part of SQLite's C interface that the storage needs, as objects that clean up and errors that explain.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "turnstile/error.h"

namespace turnstile::refcount {

class SqliteConnection;

// For bind(): stored and compared as text, where a schema says TEXT.
struct SqliteText {
  std::string_view text;
};

// A prepared statement. Ids are bound and read as blobs: any bytes, compared as bytes.
//
// Threads: those of its connection. A statement must not outlive its connection.
class SqliteStatement {
 public:
  SqliteStatement(SqliteConnection& connection, sqlite3_stmt* statement)
      : connection_(&connection), statement_(statement) {}

  // From the first placeholder on: bytes, SqliteText or numbers. The bytes must stay until the statement has
  // run.
  template <class... Values>
  SqliteStatement& bind(const Values&... values) {
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }
  // True: there is a row. After the last row, or an error, the statement is ready to be bound again.
  Expected<bool> step();
  void reset() { sqlite3_reset(statement_.get()); }
  std::string blob(int column) const;
  int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::string text(int column) const;

 private:
  void bind_one(int index, std::string_view bytes);
  void bind_one(int index, SqliteText text);
  void bind_one(int index, int64_t number);
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  SqliteConnection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// An open database. Threads: one at a time; the owner sees to it (SQLite's own mutex is off).
class SqliteConnection {
 public:
  // Waits up to `busy_timeout` for other processes, at every call.
  static Expected<std::unique_ptr<SqliteConnection>> open(const std::string& path,
                                                          std::chrono::milliseconds busy_timeout);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  sqlite3* handle() { return database_; }
  const std::string& path() const { return path_; }
  Expected<SqliteStatement> prepare(std::string_view sql);
  // Runs it to the end; rows are dropped.
  Expected<void> execute(std::string_view sql);
  // The first column of the first row: a number, or text.
  Expected<int64_t> query_integer(std::string_view sql);
  Expected<std::string> query_text(std::string_view sql);

  // Leaves the write-ahead log as it is when the connection is closed.
  void leave_log_on_close();

  // What `code`, which a call on this connection has just returned, means to whoever runs the program.
  ClientError explain(int code) const;
  // Whether a sync has failed on this connection: what it should have written may be lost although a second
  // try would not say so.
  bool sync_failed() const { return sync_failed_; }
  // Whether the last failure of a statement was that the disk is full.
  bool was_full() const { return (last_failure_ & 0xff) == SQLITE_FULL; }
  // Whether the last failure of a statement was that another process was in the way.
  bool was_busy() const { return (last_failure_ & 0xff) == SQLITE_BUSY; }

 private:
  SqliteConnection(std::string path, std::chrono::milliseconds busy_timeout)
      : path_(std::move(path)), busy_timeout_(busy_timeout) {}
  static int after_commit(void* self, sqlite3* database, const char* name, int pages);
  void note(int code);
  friend class SqliteStatement;

  const std::string path_;
  const std::chrono::milliseconds busy_timeout_;
  sqlite3* database_ = nullptr;
  int last_failure_ = SQLITE_OK;
  bool sync_failed_ = false;
};

// Ends a transaction that has not been committed by the end of the block.
struct SqliteRollBack {
  SqliteConnection& connection;
  ~SqliteRollBack() {
    if (sqlite3_get_autocommit(connection.handle()) == 0) (void)connection.execute("ROLLBACK");
  }
};

}  // namespace turnstile::refcount
