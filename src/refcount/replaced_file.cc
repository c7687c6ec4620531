// Write, fsync, rename, fsync of the directory; and the lock.
#include "refcount/replaced_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "refcount/errors.h"

namespace turnstile::refcount {
namespace {

constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW;

Expected<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_storage_error("write to", path, errno);
    if (written == 0) return storage_error(fmt::format("cannot write to {}: the disk is full", path));
    bytes.remove_prefix(size_t(written));
  }
  return {};
}

Expected<UniqueFd> take_lock(int directory, const std::string& name, const std::string& path) {
  const std::string lock_path = path + ".lock";
  UniqueFd lock(::openat(directory, (name + ".lock").c_str(), O_RDWR | O_CREAT | kFlags, 0600));
  if (!lock.is_open()) return system_storage_error("open", lock_path, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return system_storage_error("lock", lock_path, errno);
  return storage_error(fmt::format(
      "another process has the reference counts {} open (it holds {}): stop it first, use another "
      "file, or use a SQLite storage, which several processes may share",
      path, lock_path));
}

// One file may have several names (a symbolic link, "a/../b"); the lock must be the same for all of them, and
// a rename must not replace a link.
std::filesystem::path real_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::filesystem::path real = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute : real;
}

}  // namespace

Expected<ReplacedFile> ReplacedFile::open(const std::string& path) {
  if (path.empty()) return invalid_error("the path of a reference count file must not be empty");
  const std::filesystem::path real = real_path(path);
  const std::string name = real.filename().string();
  if (name.empty()) return invalid_error(fmt::format("{} names a directory; name a file in it", path));
  const std::string parent = real.parent_path().string();
  UniqueFd directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return system_storage_error("open the directory", parent, errno);
  auto lock = take_lock(directory.get(), name, real.string());
  if (!lock) return std::unexpected(lock.error());
  ReplacedFile file(real.string(), name, std::move(directory), std::move(*lock));
  if (auto removed = file.remove_temporary(); !removed) return std::unexpected(removed.error());
  if (auto synced = file.sync(file.directory_.get(), parent); !synced) return std::unexpected(synced.error());
  return file;
}

Expected<std::optional<std::string>> ReplacedFile::read() const {
  const UniqueFd fd(::openat(directory_.get(), name_.c_str(), O_RDONLY | kFlags));
  if (!fd.is_open() && errno == ENOENT) return std::nullopt;
  if (!fd.is_open()) return system_storage_error("open", path_, errno);
  std::string bytes;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_storage_error("read", path_, errno);
    if (got == 0) return bytes;
    bytes.append(buffer, size_t(got));
  }
}

Expected<void> ReplacedFile::replace(std::string_view bytes) {
  if (!sync_failure_.empty())
    return storage_error(
        fmt::format("{} is not written to any more since an earlier failure ({}): look after "
                    "the disk, then open it anew",
                    path_, sync_failure_));
  if (auto written = write_temporary(bytes); !written) {
    // Of a disk that is full this gives back what was taken of it; if it fails, the next open() does it.
    (void)remove_temporary();
    return written;
  }
  if (::renameat(directory_.get(), temporary_name().c_str(), directory_.get(), name_.c_str()) != 0)
    return system_storage_error("rename", temporary_path(), errno);
  return sync(directory_.get(), std::filesystem::path(path_).parent_path().string());
}

Expected<void> ReplacedFile::remove_temporary() {
  if (::unlinkat(directory_.get(), temporary_name().c_str(), 0) == 0 || errno == ENOENT) return {};
  return system_storage_error("remove", temporary_path(), errno);
}

Expected<void> ReplacedFile::write_temporary(std::string_view bytes) {
  const UniqueFd fd(
      ::openat(directory_.get(), temporary_name().c_str(), O_WRONLY | O_CREAT | O_TRUNC | kFlags, 0600));
  if (!fd.is_open()) return system_storage_error("create", temporary_path(), errno);
  if (auto written = write_all(fd.get(), bytes, temporary_path()); !written) return written;
  return sync(fd.get(), temporary_path());
}

Expected<void> ReplacedFile::sync(int fd, const std::string& path) {
  if (::fsync(fd) == 0) return {};
  auto failed = system_storage_error("sync", path, errno);
  sync_failure_ = failed.error().message;
  return failed;
}

}  // namespace turnstile::refcount
