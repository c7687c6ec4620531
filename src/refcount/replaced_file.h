// A file that is only ever replaced as a whole, and that one opener at a time may have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "turnstile/error.h"

namespace turnstile::refcount {

// PATH, with PATH.lock beside it, which says that it is open, and PATH.tmp, the next content while it is
// being written. At any moment, also when the machine stops, PATH holds one whole content.
//
// Not its job: what the bytes mean. Threads: none of its own; one caller at a time. Invariant: after a sync
// that failed nothing is written or synced any more, because the system reports such a failure only once and
// a second try would succeed without having written anything.
class ReplacedFile {
 public:
  // Takes the lock and removes what an interrupted replace() left. What read() returns is durable from here
  // on: the name of the last replacement may have been in the cache only.
  static Expected<ReplacedFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  // Nothing: there is no such file yet.
  Expected<std::optional<std::string>> read() const;
  // Returns when the new content is durable. After an error the old content is still there, except when the
  // directory could not be synced: then it is one of the two.
  Expected<void> replace(std::string_view bytes);

 private:
  ReplacedFile(std::string path, std::string name, UniqueFd directory, UniqueFd lock)
      : path_(std::move(path)),
        name_(std::move(name)),
        directory_(std::move(directory)),
        lock_(std::move(lock)) {}

  std::string temporary_name() const { return name_ + ".tmp"; }
  std::string temporary_path() const { return path_ + ".tmp"; }
  Expected<void> remove_temporary();
  Expected<void> write_temporary(std::string_view bytes);
  Expected<void> sync(int fd, const std::string& path);

  std::string path_;
  std::string name_;  // of path_, within the directory
  UniqueFd directory_;
  UniqueFd lock_;
  std::string sync_failure_;  // the message of the sync that failed; empty: none has
};

}  // namespace turnstile::refcount
