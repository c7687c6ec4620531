#include "journal/inspection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "journal/file.h"
#include "journal/layout.h"

namespace turnstile {
namespace {

// How often files may be replaced, or a write be under way, before we give up; and how long to let it pass.
constexpr int kMostAttempts = 20;
constexpr std::chrono::milliseconds kPause{50};

std::unexpected<Error> only_looking(const std::string& path) {
  return fail(fmt::format("{} is only being looked at, and must not be changed", path));
}

class SeenFileReader final : public File {
 public:
  SeenFileReader(SeenFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<size_t> read_at(uint64_t offset, std::span<char> into) override {
    const uint64_t left = file_.size - std::min(offset, file_.size);
    const size_t wanted = size_t(std::min<uint64_t>(into.size(), left));
    size_t have = 0;
    while (have < wanted) {
      const ssize_t got =
          ::pread(file_.fd->get(), into.data() + have, wanted - have, off_t(file_.begin + offset + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error(fmt::format("read at byte {} of", offset + have), path_);
      if (got == 0) break;
      have += size_t(got);
    }
    return have;
  }
  Result<uint64_t> size() override { return file_.size; }
  Result<void> write_at(uint64_t, std::string_view) override { return only_looking(path_); }
  Result<void> truncate(uint64_t) override { return only_looking(path_); }
  Result<void> sync() override { return only_looking(path_); }

 private:
  const SeenFile file_;
  const std::string path_;
};

class SeenDirectory final : public Directory {
 public:
  SeenDirectory(std::string path, std::vector<SeenFile> files)
      : path_(std::move(path)), files_(std::move(files)) {}

  Result<std::vector<std::string>> list() override {
    std::vector<std::string> names;
    for (const SeenFile& file : files_) names.push_back(file.name);
    return names;
  }
  Result<std::unique_ptr<File>> open(const std::string& name) override {
    const auto found = std::ranges::find(files_, name, &SeenFile::name);
    if (found == files_.end()) return fail(fmt::format("there is no {}", path_of(name)));
    return std::make_unique<SeenFileReader>(*found, path_of(name));
  }
  Result<std::unique_ptr<File>> create(const std::string& name) override {
    return only_looking(path_of(name));
  }
  Result<void> rename(const std::string& from, const std::string&) override {
    return only_looking(path_of(from));
  }
  Result<void> remove(const std::string& name) override { return only_looking(path_of(name)); }
  Result<void> sync() override { return only_looking(path_); }
  std::string path_of(const std::string& name) const override { return path_ + "/" + name; }

 private:
  const std::string path_;
  const std::vector<SeenFile> files_;
};

// Names of logs and snapshots, in order.
Result<std::vector<std::string>> journal_names(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) return fail(fmt::format("cannot list {}: {}", path.string(), error.message()));
  const Listing listing = sort_names(names);
  names.clear();
  for (const uint64_t first : listing.snapshots) names.push_back(file_name(FileKind::snapshot, first));
  for (const uint64_t first : listing.logs) names.push_back(file_name(FileKind::log, first));
  return names;
}

// Nothing: a file has been replaced meanwhile.
Result<std::optional<std::vector<SeenFile>>> open_all(const std::filesystem::path& path,
                                                      const std::vector<std::string>& names) {
  std::vector<SeenFile> files;
  for (const std::string& name : names) {
    const std::string file_path = (path / name).string();
    auto fd = std::make_shared<UniqueFd>(::open(file_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd->is_open() && errno == ENOENT) return std::nullopt;
    if (!fd->is_open()) return system_error("open", file_path);
    struct stat status;
    if (::fstat(fd->get(), &status) != 0) return system_error("look at", file_path);
    files.push_back({name, std::move(fd), 0, uint64_t(status.st_size)});
  }
  return files;
}

}  // namespace

std::unique_ptr<Directory> make_seen_directory(std::string path, std::vector<SeenFile> files) {
  return std::make_unique<SeenDirectory>(std::move(path), std::move(files));
}

// A listing is not atomic: it may have an old file and lack the new one that replaces it. Names only ever
// grow, so what is the same before and after all files were opened was there all the time in between
// (decision 0031).
Result<std::unique_ptr<Directory>> see_directory(const std::filesystem::path& path) {
  const std::filesystem::path clean = path.has_filename() ? path : path.parent_path();
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kPause);
    const auto before = journal_names(clean);
    if (!before) return std::unexpected(before.error());
    if (before->empty()) continue;
    auto files = open_all(clean, *before);
    if (!files) return std::unexpected(files.error());
    const auto after = journal_names(clean);
    if (!after) return std::unexpected(after.error());
    if (*files && *before == *after) return make_seen_directory(clean.string(), std::move(**files));
  }
  const auto names = journal_names(clean);
  if (names && names->empty())
    return fail(fmt::format("there is no journal in {}: it has no file log-… or snapshot-…", clean.string()));
  return fail(fmt::format("the files of {} are replaced again and again; try once more", clean.string()));
}

Result<Inspection> inspect_directory(const std::filesystem::path& path) {
  std::string last_fault;
  for (int attempt = 0;; ++attempt) {
    auto directory = see_directory(path);
    if (!directory) return std::unexpected(directory.error());
    auto replayed = replay_directory(**directory, [](const Record&) {});
    if (replayed) return Inspection{*std::move(directory), *std::move(replayed)};
    if (attempt == kMostAttempts || replayed.error().message == last_fault)
      return std::unexpected(replayed.error());
    last_fault = replayed.error().message;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace turnstile
