// Looking at a journal from outside: a directory, also one that a server is writing to, or a backup file.
// Nothing is locked, made or changed.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "journal/file.h"
#include "journal/replay.h"

namespace turnstile {

// A part of an open file that is looked at as a file of a journal.
struct SeenFile {
  std::string name;
  std::shared_ptr<UniqueFd> fd;
  uint64_t begin = 0, size = 0;
};
// A Directory of such files. It refuses to change anything. `path`: for people.
std::unique_ptr<Directory> make_seen_directory(std::string path, std::vector<SeenFile> files);

// The journal files that a directory has at one moment, all of them open: a server that replaces some of them
// meanwhile takes nothing away. An error where there is no journal.
Result<std::unique_ptr<Directory>> see_directory(const std::filesystem::path& path);

// A journal that has been read to its end and found sound.
struct Inspection {
  std::unique_ptr<Directory> directory;
  Replayed replayed;
};

// The error names file and byte, as a server's would. A server may be writing: what looks damaged is looked
// at again before it is called so, because a write under way can look like anything.
Result<Inspection> inspect_directory(const std::filesystem::path& path);

}  // namespace turnstile
