// Ingests: the half of BlobStore that deals with blobs which are not whole yet.
//
// `about` is written once, before the data file is made, so that an ingest with data has one; it is two lines
// and the ref, which comes last because it may contain anything:
//   <nanoseconds of the beginning> <total>\n<expected digest or empty>\n<ref>
#include <fmt/format.h>

#include <charconv>

#include "base/log.h"
#include "content/blob_store.h"
#include "content/hasher.h"

namespace turnstile::content {
namespace {

constexpr size_t kMaxAbout = 64 * 1024;

// Named by a hash: a ref is the caller's text and never becomes part of a path.
std::string directory_of(const std::string& ref) {
  Hasher hasher(Algorithm::sha256);
  hasher.update(ref);
  return std::string(hasher.digest().hex());
}

std::string write_about(const IngestStatus& status) {
  return fmt::format("{} {}\n{}\n{}", status.started.ns, status.total, status.expected, status.ref);
}

bool read_number(std::string_view& text, int64_t& value, char end) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop == text.data() + text.size() || *stop != end) return false;
  text.remove_prefix(size_t(stop - text.data()) + 1);
  return true;
}

std::optional<IngestStatus> parse_about(std::string_view text) {
  IngestStatus status;
  if (!read_number(text, status.started.ns, ' ') || !read_number(text, status.total, '\n'))
    return std::nullopt;
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  status.expected = text.substr(0, line);
  status.ref = text.substr(line + 1);
  return status;
}

}  // namespace

Outcome<IngestStatus> BlobStore::read_ingest(const std::string& name) const {
  const Outcome<Directory> directory = ingests_.open(name);
  if (!directory) return std::unexpected(directory.error());
  const Outcome<std::string> about = directory->read_small("about", kMaxAbout);
  if (!about) return std::unexpected(about.error());
  std::optional<IngestStatus> status = parse_about(*about);
  if (!status || directory_of(status->ref) != name)
    return fail(ErrorClass::internal, fmt::format("ingest {}: damaged", name));
  const Outcome<UniqueFd> data = directory->open_file("data", O_RDONLY);
  if (!data) return std::unexpected(data.error());
  const Outcome<struct stat> file = look_at(data->get());
  if (!file) return std::unexpected(file.error());
  // A crash while it was published, where that needs a link: these bytes must not be written to any more.
  if (file->st_nlink > 1)
    return fail(ErrorClass::internal, fmt::format("ingest {}: published already", name));
  status->offset = file->st_size;
  status->updated = Timestamp::of(file->st_mtim);
  return *status;
}

Outcome<Ingest> BlobStore::begin_ingest(const std::string& name, IngestStatus status) const {
  if (const Outcome<void> removed = ingests_.remove_directory(name); !removed)
    return std::unexpected(removed.error());
  const Outcome<Directory> directory = ingests_.open_or_make(name);
  if (!directory) return std::unexpected(directory.error());
  status.started = status.updated = Timestamp::now();
  status.offset = 0;
  const std::string about = write_about(status);
  if (about.size() > kMaxAbout) return fail(ErrorClass::invalid_argument, "the ref is too long");
  const Outcome<UniqueFd> file = directory->open_file("about", O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!file) return std::unexpected(file.error());
  if (const Outcome<void> written = write_at(file->get(), 0, about); !written)
    return std::unexpected(written.error());
  Outcome<UniqueFd> data = directory->open_file("data", O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!data) return std::unexpected(data.error());
  return Ingest{name, std::move(*data), std::move(status)};
}

Outcome<Ingest> BlobStore::open_ingest(const std::string& ref, int64_t total,
                                       const std::string& expected) const {
  const std::string name = directory_of(ref);
  IngestStatus wanted{.ref = ref, .started = {}, .updated = {}, .total = total, .expected = expected};
  Outcome<IngestStatus> status = read_ingest(name);
  const bool other_size = status && total > 0 && status->total > 0 && total != status->total;
  if (!status || other_size) return begin_ingest(name, std::move(wanted));
  const Outcome<Directory> directory = ingests_.open(name);
  if (!directory) return std::unexpected(directory.error());
  Outcome<UniqueFd> data = directory->open_file("data", O_RDWR);
  if (!data) return begin_ingest(name, std::move(wanted));  // a crash just before it was published
  if (status->total == 0) status->total = total;
  return Ingest{name, std::move(*data), std::move(*status)};
}

Outcome<void> BlobStore::drop_ingest(const std::string& ref) const {
  return ingests_.remove_directory(directory_of(ref));
}

Outcome<IngestStatus> BlobStore::ingest_status(const std::string& ref) const {
  Outcome<IngestStatus> status = read_ingest(directory_of(ref));
  if (!status && status.error().code == ErrorClass::not_found)
    return fail(ErrorClass::not_found, fmt::format("ref '{}': no such ingest", ref));
  return status;
}

Outcome<std::vector<IngestStatus>> BlobStore::ingests() const {
  std::vector<IngestStatus> all;
  const Outcome<void> walked = ingests_.for_each([&](const std::string& name) {
    // One that comes or goes at this moment is not an error of the whole list.
    if (Outcome<IngestStatus> status = read_ingest(name)) all.push_back(std::move(*status));
  });
  if (!walked) return std::unexpected(walked.error());
  return all;
}

Outcome<size_t> BlobStore::clean_ingests() const {
  std::vector<std::string> broken;
  const Outcome<void> walked = ingests_.for_each([&](const std::string& name) {
    if (!read_ingest(name)) broken.push_back(name);
  });
  if (!walked) return std::unexpected(walked.error());
  size_t removed = 0;
  for (const std::string& name : broken) {
    const Outcome<void> gone = ingests_.remove_directory(name);
    if (gone)
      ++removed;
    else
      log_warning("a broken ingest cannot be removed", {{"error", gone.error().message}});
  }
  return removed;
}

}  // namespace turnstile::content
