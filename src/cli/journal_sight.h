// A journal as `turnstile inspect` shows it. A file of its own because the words of the server and those of
// the client library are alike (Event, Token): here only plain values cross from one to the other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace turnstile::cli {

struct JournalSight {
  struct File {
    std::string name;
    uint64_t bytes = 0;
    uint64_t records = 0;
  };
  bool is_backup = false;
  std::vector<File> files;  // those that a server would read
  uint64_t first_batch = 0, next_batch = 0;
  uint64_t records = 0, snapshot_records = 0;
  Time latest{};
  bool torn = false;      // an unfinished write is at the end: of a crash, or of a server at this moment
  std::string torn_what;  // in words, with file and byte
  std::vector<std::string> damaged_snapshots;
  // What a server would know: holds, waiters and so on.
  std::vector<std::pair<std::string, uint64_t>> facts;
  std::vector<std::pair<std::string, uint64_t>> records_by_kind;
};

// Reads all of a directory, also one in use, or of a backup. The error names file and byte.
Result<JournalSight> look_at_journal(const std::string& path);

// Every record, in the order in which a server reads them, as one JSON object without a line end.
Result<void> dump_journal(const std::string& path, const std::function<void(const std::string&)>& line);

struct FileVerdict {
  std::string name;
  std::string fault;  // "": sound
};
// Every file of a directory, the ones that a server would not read, too. An error: it cannot be read at all.
Result<std::vector<FileVerdict>> verify_journal(const std::string& path);

// What `backup` and `restore` have done.
struct BackupSight {
  uint64_t next_batch = 0, records = 0, bytes = 0;
  Time latest{};
};
// `life`: of the server that is said to write this journal (GET /version); another one's is refused. 0:
// whatever.
Result<BackupSight> back_up(const std::string& directory, uint64_t life, const std::string& file);
Result<BackupSight> restore(const std::string& file, const std::string& directory);

}  // namespace turnstile::cli
