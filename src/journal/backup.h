// A backup: the files of a journal that a server would read, in one tar file with a list of them in front
// (docs/journal-format.md). Taken while the server works; restored into a directory of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "journal/inspection.h"

namespace turnstile {

inline constexpr uint32_t kBackupVersion = 1;

// What a backup says of itself.
struct BackupInfo {
  uint64_t base = 0;        // the first batch that is not in its snapshot
  uint64_t next_batch = 0;  // the first that it does not have
  uint64_t records = 0;
  Time latest{};       // of its last batch
  uint64_t bytes = 0;  // of its file
};

// Writes what `from` has to a new file (mode 0600), syncs it and reads it back. The file has its name only
// when all of it is there. `program`: who writes it.
Result<BackupInfo> write_backup(const Inspection& from, const std::filesystem::path& to,
                                std::string_view program, Time now);

// Opens a backup and reads all of it.
Result<Inspection> inspect_backup(const std::filesystem::path& path);

// Makes the journal of a backup in `to`, which must not be there, or be empty; then reads it back. Files
// belong to whom the directory belongs, or else the one that it is made in. After an error what was made is
// removed.
Result<BackupInfo> restore_backup(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace turnstile
