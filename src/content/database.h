// SQLite, as much of it as this folder needs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "content/content_error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace turnstile::content {

// One connection. Threads: one at a time.
class Database {
 public:
  static Outcome<Database> open(const std::string& path);

  // Statements without parameters or results; several may be separated by ';'.
  Outcome<void> run(const char* sql);

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  explicit Database(sqlite3* connection) : connection_(connection) {}

  std::unique_ptr<sqlite3, Close> connection_;
};

// One statement: bind its parameters in order, then step through its rows.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text);  // must stay until the statement has run
  Statement& bind(int64_t number);
  // True: there is a row. Mistakes of bind() show here.
  Outcome<bool> step();
  Outcome<void> run();  // for statements that return no rows

  std::string text(int column) const;
  int64_t number(int column) const;

 private:
  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
  int status_;
  int bound_ = 0;
};

}  // namespace turnstile::content
