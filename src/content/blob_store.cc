// Published blobs: finding, publishing, removing. Ingests are in ingest.cc.
#include "content/blob_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace turnstile::content {
namespace {

std::string blob_directory(const Digest& digest) {
  return fmt::format("blobs/{}", name_of(digest.algorithm()));
}

}  // namespace

bool is_plain_name(std::string_view node) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !node.empty() && node.size() <= 128 && node.front() != '.' && std::ranges::all_of(node, plain);
}

Outcome<BlobStore> BlobStore::open(const Roots& roots) {
  if (!is_plain_name(roots.node))
    return fail(
        ErrorClass::invalid_argument,
        fmt::format("the node's name '{}' must consist of letters, digits, '.', '_' and '-'", roots.node));
  Outcome<Directory> root = Directory::open_root(roots.root, true);
  if (!root) return std::unexpected(root.error());
  if (roots.used && !root->open("blobs"))
    return fail(
        ErrorClass::failed_precondition,
        fmt::format("{} is empty, but this node has blobs: is it mounted? To begin anew without them, "
                    "remove the directory of --state",
                    roots.root));
  for (const char* made : {"blobs", "blobs/sha256", "blobs/sha512", "ingest"}) {
    const Outcome<Directory> there = root->open_or_make(made);
    if (!there) return std::unexpected(there.error());
  }
  for (const char* changed : {"blobs", "."})
    if (const Outcome<void> synced = root->open(changed)->sync(); !synced)
      return std::unexpected(synced.error());
  Outcome<Directory> ingests = root->open_or_make("ingest/" + roots.node);
  if (!ingests) return std::unexpected(ingests.error());
  for (const std::string& path : roots.read_roots) {
    const Outcome<Directory> opened = Directory::open_root(path, false);
    if (!opened) return std::unexpected(opened.error());
    if (!opened->open("blobs")) log_warning("a --read-root is empty: is it mounted?", {{"directory", path}});
  }
  return BlobStore(std::move(*root), std::move(*ingests), roots.read_roots);
}

Outcome<OpenBlob> BlobStore::find(const Digest& digest) const {
  const std::string path = fmt::format("{}/{}", blob_directory(digest), digest.hex());
  const auto look_in = [&](const Directory& root) -> Outcome<OpenBlob> {
    Outcome<UniqueFd> fd = root.open_file(path, O_RDONLY);
    if (!fd) return std::unexpected(fd.error());
    const Outcome<struct stat> status = look_at(fd->get());
    if (!status) return std::unexpected(status.error());
    return OpenBlob{std::move(*fd), status->st_size};
  };
  Outcome<OpenBlob> found = look_in(root_);
  for (size_t i = 0; !found && i < read_roots_.size(); ++i) {
    // Trouble in one root must not hide that the blob lies in another.
    if (found.error().code != ErrorClass::not_found)
      log_warning("looking for a blob", {{"error", found.error().message}});
    const Outcome<Directory> root = Directory::open_root(read_roots_[i], false);
    found = root ? look_in(*root) : std::unexpected(root.error());
  }
  if (!found && found.error().code == ErrorClass::not_found)
    return fail(ErrorClass::not_found, fmt::format("content {}: not found", digest.text()));
  return found;
}

Outcome<void> BlobStore::remove(const Digest& digest, bool everywhere) const {
  const auto remove_in = [&](const Directory& root) -> Outcome<void> {
    const Outcome<Directory> directory = root.open(blob_directory(digest));
    if (!directory) {
      if (directory.error().code == ErrorClass::not_found) return {};
      return std::unexpected(directory.error());
    }
    return directory->remove_file(std::string(digest.hex()));
  };
  const auto remove_in_read_root = [&](const std::string& path) -> Outcome<void> {
    const Outcome<Directory> root = Directory::open_root(path, false);
    if (!root) return std::unexpected(root.error());
    if (root->open("blobs")) return remove_in(*root);
    return fail(ErrorClass::unavailable, fmt::format("{} is empty: is it mounted?", path));
  };
  Outcome<void> result = remove_in(root_);
  for (size_t i = 0; everywhere && i < read_roots_.size(); ++i)
    if (Outcome<void> one = remove_in_read_root(read_roots_[i]); !one) result = one;
  return result;
}

Outcome<void> BlobStore::publish(const Ingest& ingest, const Digest& digest) const {
  if (::fsync(ingest.data.get()) != 0) return fail_errno("sync", digest.text(), errno);
  const Outcome<Directory> from = ingests_.open(ingest.name);
  if (!from) return std::unexpected(from.error());
  const Outcome<Directory> to = root_.open(blob_directory(digest));
  if (!to) return std::unexpected(to.error());
  // Read-only from here on, and readable for other nodes.
  if (::fchmod(ingest.data.get(), 0444) != 0) return fail_errno("change the mode of", digest.text(), errno);
  const Outcome<void> moved = from->move_no_replace("data", *to, std::string(digest.hex()));
  if (!moved && moved.error().code != ErrorClass::already_exists) {
    ::fchmod(ingest.data.get(), 0600);
    return moved;
  }
  if (const Outcome<void> synced = to->sync(); !synced) return synced;
  if (const Outcome<void> removed = ingests_.remove_directory(ingest.name); !removed)
    log_warning("an ingest stays behind", {{"error", removed.error().message}});
  return moved;
}

}  // namespace turnstile::content
