// Directories and files of a store, reached in a way that cannot leave it: every open is an openat2 beneath a
// directory that is already open, and follows no symbolic link, wherever in the path somebody planted one.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "content/content_error.h"

namespace turnstile::content {

// One open directory.
//
// Paths given to it are relative and are ours (made from digests and hashes); openat2 is the second line of
// defence, for what others may have put on the disk. Threads: any; it has no state but the descriptor.
class Directory {
 public:
  // `path` is the administrator's, so it may lead through links. `create`: with all that is missing above it.
  static Outcome<Directory> open_root(const std::string& path, bool create);

  // A directory beneath this one.
  Outcome<Directory> open(const std::string& path) const;
  // The same, but makes the last step of the path if it is missing. It survives a crash only after a sync()
  // of what it is in.
  Outcome<Directory> open_or_make(const std::string& path) const;
  // A regular file beneath this one; `flags` as for open(2).
  Outcome<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0) const;

  // A small file, whole. Error not_found, or failed_precondition when it is larger than `limit`.
  Outcome<std::string> read_small(const std::string& path, size_t limit) const;

  // Names only, no path: they act on an entry of this directory itself.
  Outcome<void> remove_file(const std::string& name) const;  // missing is fine
  // Removes the directory `name` and the files in it. Missing is fine.
  Outcome<void> remove_directory(const std::string& name) const;
  Outcome<void> for_each(const std::function<void(const std::string& name)>& visit) const;

  // Moves `name` to `to/new_name`, at once and never over something that is there: error already_exists.
  Outcome<void> move_no_replace(const std::string& name, const Directory& to,
                                const std::string& new_name) const;
  // The same, over whatever is there.
  Outcome<void> move(const std::string& name, const Directory& to, const std::string& new_name) const;
  // Gives the file `name` a second name, `to/new_name`. False: the file system cannot. Errors not_found,
  // already_exists.
  Outcome<bool> link(const std::string& name, const Directory& to, const std::string& new_name) const;
  // How many names a regular file has, as the file system's own server knows it: what this machine remembers
  // of it may be a second old on a network or FUSE file system. 0: there is none, or something that is no
  // regular file.
  Outcome<uint64_t> names_of(const std::string& path) const;
  // Makes what was created, moved and removed here survive a crash.
  Outcome<void> sync() const;

  const std::string& path() const { return path_; }

 private:
  Directory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  std::string name_of(const std::string& below) const { return path_ + "/" + below; }

  UniqueFd fd_;
  std::string path_;  // for messages
};

// Reading and writing whole ranges. A short read means the end of the file.
// `name`: for messages.
Outcome<void> write_at(int fd, int64_t offset, std::string_view bytes, std::string_view name = "the ingest");
Outcome<size_t> read_at(int fd, int64_t offset, std::span<char> into);
Outcome<struct stat> look_at(int fd);

// Which file it is, whatever its names.
struct FileId {
  dev_t device = 0;
  ino_t number = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};
inline FileId id_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }

}  // namespace turnstile::content
