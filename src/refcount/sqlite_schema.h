// What makes a SQLite file a database of reference counts: its marks, its version, its table.
#pragma once

#include "refcount/sqlite_connection.h"

namespace turnstile::refcount {

// Makes an empty database one of ours, and refuses one that is another program's or a newer version's. Sets
// up WAL mode. Several processes may do it at once.
Expected<void> prepare_schema(SqliteConnection& connection, std::chrono::milliseconds busy_timeout);

}  // namespace turnstile::refcount
