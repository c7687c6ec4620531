// The only file of this folder that opens, moves or removes anything on the disk.
#include "content/directory.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "content/pause.h"

namespace turnstile::content {
namespace {

// No fall-back to openat: where openat2 is missing, the store is not opened.
int open_beneath(int directory, const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = uint64_t(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: something was renamed on the way; the kernel asks to be asked again.
  for (int tries = 0; tries < 100; ++tries) {
    const long fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) return int(fd);
  }
  return -1;
}

std::pair<std::string, std::string> split(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

Outcome<Directory> Directory::open_root(const std::string& path, bool create) {
  if (create) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return fail_errno("create", path, error.value());
  }
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return fail_errno("open directory", path, errno);
  return Directory(std::move(fd), path);
}

Outcome<Directory> Directory::open(const std::string& path) const {
  UniqueFd fd(open_beneath(fd_.get(), path.c_str(), O_RDONLY | O_DIRECTORY, 0));
  if (!fd.is_open()) return fail_errno("open directory", name_of(path), errno);
  return Directory(std::move(fd), name_of(path));
}

Outcome<Directory> Directory::open_or_make(const std::string& path) const {
  Outcome<Directory> there = open(path);
  if (there || there.error().code != ErrorClass::not_found) return there;
  const auto [above, name] = split(path);
  UniqueFd parent(open_beneath(fd_.get(), above.c_str(), O_RDONLY | O_DIRECTORY, 0));
  if (!parent.is_open()) return fail_errno("open directory", name_of(above), errno);
  if (::mkdirat(parent.get(), name.c_str(), 0755) != 0 && errno != EEXIST)
    return fail_errno("create directory", name_of(path), errno);
  return open(path);
}

Outcome<UniqueFd> Directory::open_file(const std::string& path, int flags, mode_t mode) const {
  // O_NONBLOCK: a FIFO that somebody put here must not make us wait for its other end.
  UniqueFd fd(open_beneath(fd_.get(), path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK, mode));
  if (!fd.is_open()) return fail_errno("open", name_of(path), errno);
  const Outcome<struct stat> status = look_at(fd.get());
  if (!status) return std::unexpected(status.error());
  if (!S_ISREG(status->st_mode))
    return fail(ErrorClass::internal, name_of(path) + ": not a regular file, not touched");
  return fd;
}

Outcome<std::string> Directory::read_small(const std::string& path, size_t limit) const {
  const Outcome<UniqueFd> fd = open_file(path, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  std::string text(limit + 1, '\0');
  const Outcome<size_t> got = read_at(fd->get(), 0, text);
  if (!got) return std::unexpected(got.error());
  if (*got > limit) return fail(ErrorClass::failed_precondition, name_of(path) + " is too large");
  text.resize(*got);
  return text;
}

Outcome<void> Directory::remove_file(const std::string& name) const {
  if (::unlinkat(fd_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return fail_errno("remove", name_of(name), errno);
  return {};
}

Outcome<void> Directory::remove_directory(const std::string& name) const {
  const Outcome<Directory> inside = open(name);
  if (!inside) {
    if (inside.error().code == ErrorClass::not_found) return {};
    return std::unexpected(inside.error());
  }
  Outcome<void> removed;
  const Outcome<void> walked = inside->for_each([&](const std::string& file) {
    if (Outcome<void> one = inside->remove_file(file); !one) removed = one;
  });
  if (!walked) return walked;
  if (!removed) return removed;
  if (::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    return fail_errno("remove directory", name_of(name), errno);
  return {};
}

Outcome<void> Directory::for_each(const std::function<void(const std::string& name)>& visit) const {
  const int fd = open_beneath(fd_.get(), ".", O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0) return fail_errno("list", path_, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd), ::closedir);
  if (!entries) return fail_errno("list", path_, errno);
  for (;;) {
    errno = 0;  // the end and an error look alike otherwise, and who is not seen is not spared
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr && errno != 0) return fail_errno("list", path_, errno);
    if (entry == nullptr) return {};
    const std::string name = entry->d_name;
    if (name != "." && name != "..") visit(name);
  }
}

Outcome<void> Directory::move_no_replace(const std::string& name, const Directory& to,
                                         const std::string& new_name) const {
  if (::renameat2(fd_.get(), name.c_str(), to.fd_.get(), new_name.c_str(), RENAME_NOREPLACE) == 0) return {};
  // Some network and FUSE file systems do not know the flag. A hard link does not replace, either.
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) {
    if (::linkat(fd_.get(), name.c_str(), to.fd_.get(), new_name.c_str(), 0) == 0) return remove_file(name);
  }
  return fail_errno("publish", to.name_of(new_name), errno);
}

Outcome<void> Directory::move(const std::string& name, const Directory& to,
                              const std::string& new_name) const {
  if (::renameat(fd_.get(), name.c_str(), to.fd_.get(), new_name.c_str()) == 0) return {};
  return fail_errno("move", to.name_of(new_name), errno);
}

Outcome<bool> Directory::link(const std::string& name, const Directory& to,
                              const std::string& new_name) const {
  if (simulated_without_links) return false;
  if (::linkat(fd_.get(), name.c_str(), to.fd_.get(), new_name.c_str(), 0) == 0) return true;
  switch (errno) {
    case EXDEV:   // it lies on another one's disk
    case EPERM:   // a file system without links; or a file of another user's, where that is protected
    case EACCES:  // the same, on others
    case ENOTSUP:
    case ENOSYS:
    case EINVAL:
    case EMLINK:
      return false;
    default:
      return fail_errno("link", to.name_of(new_name), errno);
  }
}

Outcome<uint64_t> Directory::names_of(const std::string& path) const {
  struct statx status;
  if (::statx(fd_.get(), path.c_str(), AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_NLINK | STATX_TYPE,
              &status) == 0)
    return S_ISREG(status.stx_mode) ? status.stx_nlink : 0;
  if (errno == ENOENT || errno == ENOTDIR) return 0;
  return fail_errno("look at", name_of(path), errno);
}

Outcome<void> Directory::sync() const {
  // EINVAL: a file system that has nothing to sync for a directory.
  if (::fsync(fd_.get()) != 0 && errno != EINVAL) return fail_errno("sync directory", path_, errno);
  return {};
}

Outcome<void> write_at(int fd, int64_t offset, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write to", name, errno);
    if (written == 0) return fail_errno("write to", name, ENOSPC);
    bytes.remove_prefix(size_t(written));
    offset += written;
  }
  return {};
}

Outcome<size_t> read_at(int fd, int64_t offset, std::span<char> into) {
  size_t have = 0;
  while (have < into.size()) {
    const ssize_t got = ::pread(fd, into.data() + have, into.size() - have, offset + int64_t(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read", "a file of the store", errno);
    if (got == 0) break;
    have += size_t(got);
  }
  return have;
}

Outcome<struct stat> look_at(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return fail_errno("look at", "a file of the store", errno);
  return status;
}

}  // namespace turnstile::content
