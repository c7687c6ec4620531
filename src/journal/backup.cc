#include "journal/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>

#include "base/hash.h"
#include "base/rfc3339.h"
#include "journal/file.h"
#include "journal/layout.h"
#include "journal/tar.h"

namespace turnstile {
namespace {

constexpr const char* kManifestName = "MANIFEST";
constexpr uint64_t kMostManifestBytes = 1 << 20;
constexpr size_t kCopyBytes = 1 << 20;

std::unexpected<Error> refuse(const std::string& path, uint64_t offset, std::string_view what) {
  return fail(fmt::format("backup {} at byte {}: {}. Nothing was changed.", path, offset, what));
}

// A new file that is written from its beginning. Not complete before finish().
class Output {
 public:
  static Result<Output> create(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.is_open()) return system_error("create", path);
    return Output(std::move(fd), path);
  }

  Result<void> write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return system_error("write to", path_);
      bytes.remove_prefix(size_t(written));
      written_ += uint64_t(written);
    }
    return {};
  }
  Result<void> write_zeros(size_t count) { return write(std::string(count, '\0')); }
  // The first `size` bytes of a file.
  Result<void> copy(File& from, uint64_t size, const std::string& from_path) {
    std::string buffer(kCopyBytes, '\0');
    for (uint64_t at = 0; at < size;) {
      const size_t wanted = size_t(std::min<uint64_t>(buffer.size(), size - at));
      const auto got = from.read_at(at, std::span(buffer).first(wanted));
      if (!got) return std::unexpected(got.error());
      if (*got != wanted) return fail(fmt::format("{} has become shorter while it was read", from_path));
      if (auto done = write(std::string_view(buffer).substr(0, wanted)); !done) return done;
      at += wanted;
    }
    return {};
  }
  Result<void> give_to(uid_t owner, gid_t group) {
    if (::fchown(fd_.get(), owner, group) != 0) return system_error("change the owner of", path_);
    return {};
  }
  Result<void> finish() {
    if (::fsync(fd_.get()) != 0) return system_error("sync", path_);
    return {};
  }
  uint64_t written() const { return written_; }

 private:
  Output(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::string path_;
  uint64_t written_ = 0;
};

Result<void> sync_directory(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return system_error("sync", path.string());
  return {};
}

std::filesystem::path parent_of(const std::filesystem::path& path) {
  return std::filesystem::absolute(path).parent_path();
}

BackupInfo info_of(const Replayed& replayed) {
  return {.base = replayed.base,
          .next_batch = replayed.next_batch,
          .records = replayed.report.records,
          .latest = replayed.report.latest,
          .bytes = 0};
}

std::string checksum_line(std::string_view lines) {
  return fmt::format("checksum {:016x}\n", xxh3_64(lines));
}

std::string make_manifest(const Replayed& replayed, std::string_view program, Time now) {
  std::string text = fmt::format("turnstile-backup {}\nprogram {}\nwritten ", kBackupVersion, program);
  append_rfc3339(text, now);
  text += fmt::format("\nbase {}\nnext {}\nrecords {}\n", replayed.base, replayed.next_batch,
                      replayed.report.records);
  for (const ReplayedFile& file : replayed.files)
    text += fmt::format("file {} {}\n", file_name(file.kind, file.first_batch), file.bytes);
  return text + checksum_line(text);
}

struct Manifest {
  uint64_t base = 0, next = 0, records = 0;
  std::vector<tar::Entry> files;
};

bool take_number(std::string_view text, uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// The error is what is wrong, in words.
Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  const size_t last = text.rfind("checksum ");
  if (!text.starts_with("turnstile-backup ") || last == text.npos)
    return fail("this is not a backup of Turnstile");
  if (text.substr(last) != checksum_line(text.substr(0, last)))
    return fail("the list of its files is damaged");
  for (std::string_view rest = text.substr(0, last); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string_view key = line.substr(0, line.find(' '));
    const std::string_view value = line.substr(std::min(line.size(), key.size() + 1));
    uint64_t version = 0;
    bool good = true;
    if (key == "turnstile-backup") {
      if (!take_number(value, version) || version != kBackupVersion)
        return fail(
            fmt::format("it is a backup of version {}, this program knows {}: use the program that wrote it",
                        value, kBackupVersion));
    } else if (key == "base") {
      good = take_number(value, manifest.base);
    } else if (key == "next") {
      good = take_number(value, manifest.next);
    } else if (key == "records") {
      good = take_number(value, manifest.records);
    } else if (key == "file") {
      tar::Entry& file = manifest.files.emplace_back();
      const size_t space = value.rfind(' ');
      good = space != value.npos && take_number(value.substr(space + 1), file.size);
      file.name = value.substr(0, space);
    } else {
      good = key == "program" || key == "written";
    }
    if (!good)
      return fail(fmt::format("its list of files has a line that this program does not know, '{}'", line));
  }
  return manifest;
}

// Reads a tar file of ours: where its files lie.
class Archive {
 public:
  explicit Archive(std::string path) : path_(std::move(path)) {}

  Result<std::vector<SeenFile>> read() {
    fd_ = std::make_shared<UniqueFd>(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status;
    if (!fd_->is_open() || ::fstat(fd_->get(), &status) != 0) return system_error("open", path_);
    size_ = uint64_t(status.st_size);
    std::vector<SeenFile> files;
    for (;;) {
      const auto block = bytes(offset_, tar::kBlock);
      if (!block) return std::unexpected(block.error());
      if (block->size() == tar::kBlock && block->find_first_not_of('\0') == block->npos) return files;
      const auto entry = tar::parse_header(*block);
      if (!entry && offset_ == 0) return refuse(path_, 0, "this is not a backup of Turnstile");
      if (!entry)
        return refuse(path_, offset_, "the beginning of a file is damaged, or the backup is cut short");
      const uint64_t begin = offset_ + tar::kBlock;
      if (entry->size > size_ || begin + entry->size > size_)
        return refuse(path_, offset_, fmt::format("the backup ends within {}", entry->name));
      files.push_back({entry->name, fd_, begin, entry->size});
      offset_ = begin + entry->size + tar::padding(entry->size);
    }
  }

  Result<std::string> bytes(uint64_t offset, size_t count) const {
    std::string out(count, '\0');
    const ssize_t got = ::pread(fd_->get(), out.data(), count, off_t(offset));
    if (got < 0) return system_error("read", path_);
    out.resize(size_t(got));
    return out;
  }

 private:
  const std::string path_;
  std::shared_ptr<UniqueFd> fd_;
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
};

Result<void> check_files(const Manifest& manifest, const std::vector<SeenFile>& files,
                         const std::string& path) {
  bool same = manifest.files.size() == files.size();
  for (size_t i = 0; same && i < files.size(); ++i)
    same = files[i].name == manifest.files[i].name && files[i].size == manifest.files[i].size;
  if (same) return {};
  return refuse(path, 0, "its files are not those of its list");
}

Result<void> write_files(Output& out, const Inspection& from, std::string_view program, Time now) {
  const int64_t seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const std::string manifest = make_manifest(from.replayed, program, now);
  if (auto done = out.write(tar::make_header(kManifestName, manifest.size(), seconds) + manifest); !done)
    return done;
  if (auto done = out.write_zeros(tar::padding(manifest.size())); !done) return done;
  for (const ReplayedFile& each : from.replayed.files) {
    const std::string name = file_name(each.kind, each.first_batch);
    if (each.bytes > tar::kMostBytes)
      return fail(fmt::format("{} has {} bytes, a backup's files may have {}: copy the directory instead",
                              from.directory->path_of(name), each.bytes, tar::kMostBytes));
    const auto file = from.directory->open(name);
    if (!file) return std::unexpected(file.error());
    if (auto done = out.write(tar::make_header(name, each.bytes, seconds)); !done) return done;
    if (auto done = out.copy(**file, each.bytes, from.directory->path_of(name)); !done) return done;
    if (auto done = out.write_zeros(tar::padding(each.bytes)); !done) return done;
  }
  if (auto done = out.write_zeros(2 * tar::kBlock); !done) return done;
  return out.finish();
}

// An empty directory to restore into, and whose it is.
struct Target {
  bool made = false;
  struct stat status{};
};

Result<Target> make_target(const std::filesystem::path& path) {
  Target target;
  if (::mkdir(path.c_str(), 0700) == 0) {
    target.made = true;
    if (::stat(parent_of(path).c_str(), &target.status) != 0)
      return system_error("look at", parent_of(path).string());
    return target;
  }
  if (errno != EEXIST) return system_error("create the directory", path.string());
  std::error_code error;
  const bool empty = std::filesystem::is_empty(path, error);
  if (error) return fail(fmt::format("cannot look into {}: {}", path.string(), error.message()));
  if (!empty)
    return fail(fmt::format(
        "{} is not empty: a backup is restored into a new directory. Stop the server, move this one "
        "away and try again",
        path.string()));
  if (::stat(path.c_str(), &target.status) != 0) return system_error("look at", path.string());
  return target;
}

// Root restores for the user of the server; everybody else for himself.
Result<void> give_directory(const std::filesystem::path& path, const Target& target) {
  if (::geteuid() != 0 || !target.made) return {};
  if (::chown(path.c_str(), target.status.st_uid, target.status.st_gid) != 0)
    return system_error("change the owner of", path.string());
  return {};
}

Result<void> extract(const Inspection& backup, const std::filesystem::path& to, const Target& target) {
  for (const ReplayedFile& each : backup.replayed.files) {
    const std::string name = file_name(each.kind, each.first_batch);
    const auto from = backup.directory->open(name);
    if (!from) return std::unexpected(from.error());
    auto out = Output::create((to / name).string());
    if (!out) return std::unexpected(out.error());
    if (auto done = out->copy(**from, each.bytes, backup.directory->path_of(name)); !done) return done;
    if (::geteuid() == 0) {
      if (auto done = out->give_to(target.status.st_uid, target.status.st_gid); !done) return done;
    }
    if (auto done = out->finish(); !done) return done;
  }
  if (auto done = give_directory(to, target); !done) return done;
  if (auto done = sync_directory(to); !done) return done;
  return sync_directory(parent_of(to));
}

void remove_extracted(const Inspection& backup, const std::filesystem::path& to, const Target& target) {
  std::error_code ignored;
  for (const ReplayedFile& each : backup.replayed.files)
    std::filesystem::remove(to / file_name(each.kind, each.first_batch), ignored);
  if (target.made) std::filesystem::remove(to, ignored);
}

}  // namespace

Result<BackupInfo> write_backup(const Inspection& from, const std::filesystem::path& to,
                                std::string_view program, Time now) {
  std::error_code ignored;  // what may not be looked at cannot be created either, and that says why
  if (std::filesystem::exists(to, ignored))
    return fail(fmt::format("{} exists already: choose another name", to.string()));
  const std::string unfinished = to.string() + ".tmp";
  ::unlink(unfinished.c_str());  // of one that was interrupted
  auto out = Output::create(unfinished);
  if (!out) return std::unexpected(out.error());
  Result<void> done = write_files(*out, from, program, now);
  if (done) {
    if (auto read = inspect_backup(unfinished); !read) done = std::unexpected(read.error());
  }
  if (done && ::rename(unfinished.c_str(), to.c_str()) != 0) done = system_error("rename", unfinished);
  if (done) done = sync_directory(parent_of(to));
  if (!done) {
    ::unlink(unfinished.c_str());
    return std::unexpected(done.error());
  }
  BackupInfo info = info_of(from.replayed);
  info.bytes = out->written();
  return info;
}

Result<Inspection> inspect_backup(const std::filesystem::path& path) {
  Archive archive(path.string());
  auto files = archive.read();
  if (!files) return std::unexpected(files.error());
  if (files->empty() || files->front().name != kManifestName || files->front().size > kMostManifestBytes)
    return refuse(path.string(), 0, "this is not a backup of Turnstile");
  const auto text = archive.bytes(files->front().begin, size_t(files->front().size));
  if (!text) return std::unexpected(text.error());
  const auto manifest = parse_manifest(*text);
  if (!manifest) return refuse(path.string(), files->front().begin, manifest.error().message);
  files->erase(files->begin());
  if (auto done = check_files(*manifest, *files, path.string()); !done) return std::unexpected(done.error());
  auto directory = make_seen_directory(path.string(), *std::move(files));
  auto replayed = replay_directory(*directory, [](const Record&) {});
  if (!replayed) return std::unexpected(replayed.error());
  if (replayed->base != manifest->base || replayed->next_batch != manifest->next ||
      replayed->report.records != manifest->records || replayed->tail.verdict != TailVerdict::end)
    return refuse(path.string(), 0, "it does not have the batches that its list says");
  return Inspection{std::move(directory), *std::move(replayed)};
}

Result<BackupInfo> restore_backup(const std::filesystem::path& from, const std::filesystem::path& to) {
  const auto backup = inspect_backup(from);
  if (!backup) return std::unexpected(backup.error());
  const std::filesystem::path clean = to.has_filename() ? to : to.parent_path();
  const auto target = make_target(clean);
  if (!target) return std::unexpected(target.error());
  Result<void> done = extract(*backup, clean, *target);
  if (done) {
    const auto read = inspect_directory(clean);
    if (!read)
      done = std::unexpected(read.error());
    else if (read->replayed.report.records != backup->replayed.report.records)
      done = fail(fmt::format("{} reads differently from {}: the disk cannot be trusted", clean.string(),
                              from.string()));
  }
  if (!done) {
    remove_extracted(*backup, clean, *target);
    return std::unexpected(done.error());
  }
  return info_of(backup->replayed);
}

}  // namespace turnstile
