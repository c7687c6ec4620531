// File and Directory on a real file system.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"
#include "journal/file.h"
#include "journal/layout.h"

namespace turnstile {

std::unexpected<Error> system_error(std::string_view what, const std::string& path) {
  const int code = errno;
  return fail(fmt::format("cannot {} {}: {}", what, path, std::strerror(code)));
}

namespace {

class PosixFile final : public File {
 public:
  PosixFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<void> write_at(uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), off_t(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error("write to", path_);
      if (written == 0) return fail(fmt::format("cannot write to {}: the disk is full", path_));
      bytes.remove_prefix(size_t(written));
      offset += uint64_t(written);
    }
    return {};
  }

  Result<size_t> read_at(uint64_t offset, std::span<char> into) override {
    size_t have = 0;
    while (have < into.size()) {
      const ssize_t got = ::pread(fd_.get(), into.data() + have, into.size() - have, off_t(offset + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error(fmt::format("read at byte {} of", offset + have), path_);
      if (got == 0) break;
      have += size_t(got);
    }
    return have;
  }

  Result<uint64_t> size() override {
    struct stat status;
    if (::fstat(fd_.get(), &status) != 0) return system_error("look at", path_);
    return uint64_t(status.st_size);
  }

  Result<void> truncate(uint64_t size) override {
    if (::ftruncate(fd_.get(), off_t(size)) != 0) return system_error("cut", path_);
    cut_ = true;
    return {};
  }

  // fdatasync() need not write a size that has shrunk, so after a cut it is fsync().
  Result<void> sync() override {
    if ((cut_ ? ::fsync(fd_.get()) : ::fdatasync(fd_.get())) != 0) return system_error("sync", path_);
    cut_ = false;
    return {};
  }

 private:
  UniqueFd fd_;
  const std::string path_;
  bool cut_ = false;
};

class PosixDirectory final : public Directory {
 public:
  PosixDirectory(std::filesystem::path path, UniqueFd fd, UniqueFd lock)
      : path_(std::move(path)), fd_(std::move(fd)), lock_(std::move(lock)) {}

  Result<std::vector<std::string>> list() override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(path_, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename().string());
    if (error) return fail(fmt::format("cannot list {}: {}", path_.string(), error.message()));
    return names;
  }

  Result<std::unique_ptr<File>> create(const std::string& name) override {
    return open_file(name, O_CREAT | O_TRUNC, "create");
  }
  Result<std::unique_ptr<File>> open(const std::string& name) override { return open_file(name, 0, "open"); }

  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()) != 0)
      return system_error("rename", path_of(from));
    return {};
  }
  Result<void> remove(const std::string& name) override {
    if (::unlinkat(fd_.get(), name.c_str(), 0) != 0) return system_error("remove", path_of(name));
    return {};
  }
  Result<void> sync() override {
    if (::fsync(fd_.get()) != 0) return system_error("sync", path_.string());
    return {};
  }
  std::string path_of(const std::string& name) const override { return (path_ / name).string(); }

 private:
  Result<std::unique_ptr<File>> open_file(const std::string& name, int flags, std::string_view what) {
    UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
    if (!fd.is_open()) return system_error(what, path_of(name));
    return std::make_unique<PosixFile>(std::move(fd), path_of(name));
  }

  const std::filesystem::path path_;
  const UniqueFd fd_;
  const UniqueFd lock_;
};

// A new directory whose own name is lost in a crash would lose the journal with it.
Result<void> make_directory(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return {};
    return system_error("create the directory", path.string());
  }
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  const UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return system_error("sync", parent.string());
  return {};
}

}  // namespace

Result<std::unique_ptr<Directory>> open_directory(const std::filesystem::path& path) {
  // "journal/" would have an empty last component and the wrong parent.
  const std::filesystem::path clean = path.has_filename() ? path : path.parent_path();
  if (auto made = make_directory(clean); !made) return std::unexpected(made.error());
  UniqueFd fd(::open(clean.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return system_error("open the directory", clean.string());
  const std::string lock_path = (clean / kLockName).string();
  UniqueFd lock(::openat(fd.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open()) return system_error("open", lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("lock", lock_path);
    return fail(
        fmt::format("another server has the journal {} open (it holds {}): stop it first, or give this one a "
                    "directory of its own",
                    clean.string(), lock_path));
  }
  return std::make_unique<PosixDirectory>(clean, std::move(fd), std::move(lock));
}

}  // namespace turnstile
