// What the file journal asks of a file system, and no more: so that tests can put a disk under it that is
// full, that fails, or that loses what was not synced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace turnstile {

// "cannot WHAT PATH: " and what errno means, right behind the call that failed.
std::unexpected<Error> system_error(std::string_view what, const std::string& path);

// Threads: one at a time for each file. A failed call leaves the file in an unknown state; nobody retries.
class File {
 public:
  virtual ~File() = default;

  virtual Result<void> write_at(uint64_t offset, std::string_view bytes) = 0;
  // How many bytes were read: fewer than asked for only at the end of the file.
  virtual Result<size_t> read_at(uint64_t offset, std::span<char> into) = 0;
  virtual Result<uint64_t> size() = 0;
  virtual Result<void> truncate(uint64_t size) = 0;
  // Returns when everything written or cut before is on the disk. Says nothing about the file's name.
  virtual Result<void> sync() = 0;
};

// The files of one directory, by name. Threads: any, but each name by one at a time.
class Directory {
 public:
  virtual ~Directory() = default;

  virtual Result<std::vector<std::string>> list() = 0;
  virtual Result<std::unique_ptr<File>> create(
      const std::string& name) = 0;  // empty, whatever was there before
  virtual Result<std::unique_ptr<File>> open(const std::string& name) = 0;  // must exist
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> remove(const std::string& name) = 0;
  // Returns when the names are on the disk.
  virtual Result<void> sync() = 0;
  // For people.
  virtual std::string path_of(const std::string& name) const = 0;
};

// A real directory, made (mode 0700) if there is none, with the exclusive lock that this object holds. Files
// have mode 0600.
Result<std::unique_ptr<Directory>> open_directory(const std::filesystem::path& path);

}  // namespace turnstile
