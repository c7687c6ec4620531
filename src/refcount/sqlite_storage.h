// What a test may choose of the SQLite storage; users have open_sqlite_storage(path).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "turnstile/ref_count.h"

namespace turnstile::refcount {

inline constexpr int kRefCountSchemaVersion = 1;
// Long enough for hundreds of other processes' commits, short enough for a person who waits.
inline constexpr std::chrono::milliseconds kSqliteBusyTimeout{10'000};

Expected<std::unique_ptr<RefCountStorage>> open_sqlite_storage_waiting(
    const std::string& path, std::chrono::milliseconds busy_timeout);

}  // namespace turnstile::refcount
