// Removing blobs: the half of BlobStore that takes away what others might have begun to use.
//
// The name that others look for is changed first. From then on nobody can begin to use the blob, so whoever
// finds out now that it may not be removed (the right to it has run out; a node has a second name for it)
// brings it back, and whoever finds that it may can take all the time it likes.
#include <fmt/format.h>

#include "base/log.h"
#include "content/blob_store.h"

namespace turnstile::content {

// Part of a digest is enough, and leaves room for the node's name.
std::string BlobStore::aside_name(const Digest& digest) const {
  return fmt::format(".leaving.{}.{}", digest.hex().substr(0, 32), node_);
}

Outcome<void> BlobStore::in_every_root(const Digest& digest, bool everywhere,
                                       const std::function<Outcome<void>(const Directory&)>& visit) const {
  const auto visit_root = [&](const Directory& root) -> Outcome<void> {
    const Outcome<Directory> directory = root.open(blob_directory(digest));
    if (directory) return visit(*directory);
    if (directory.error().code == ErrorClass::not_found) return {};
    return std::unexpected(directory.error());
  };
  const auto visit_read_root = [&](const std::string& path) -> Outcome<void> {
    const Outcome<Directory> root = Directory::open_root(path, false);
    if (!root) return std::unexpected(root.error());
    if (root->open("blobs")) return visit_root(*root);
    return fail(ErrorClass::unavailable, fmt::format("{} is empty: is it mounted?", path));
  };
  Outcome<void> result = visit_root(root_);
  for (size_t i = 0; everywhere && i < read_roots_.size(); ++i)
    if (Outcome<void> one = visit_read_root(read_roots_[i]); !one) result = one;
  return result;
}

Outcome<BlobStore::Aside> BlobStore::put_aside(const Digest& digest, bool everywhere) const {
  Aside aside;
  const std::string name(digest.hex()), hidden = aside_name(digest);
  const Outcome<void> moved = in_every_root(digest, everywhere, [&](const Directory& blobs) -> Outcome<void> {
    // Not over one that is aside already: that one may be somebody's. Then both are looked at.
    Outcome<void> done = blobs.move_no_replace(name, blobs, hidden);
    if (!done && done.error().code == ErrorClass::already_exists) {
      if (const Outcome<void> back = blobs.remove_file(hidden); !back) return back;  // the same bytes
      done = blobs.move_no_replace(name, blobs, hidden);
    }
    if (!done && done.error().code != ErrorClass::not_found) return done;
    // Opened, not only looked at: a network file system then asks its server anew.
    const Outcome<UniqueFd> file = blobs.open_file(hidden, O_RDONLY);
    if (!file) return {};  // there was none; or a link or a FIFO that somebody has planted
    const Outcome<struct stat> status = look_at(file->get());
    if (!status) return std::unexpected(status.error());
    aside.in_use |= status->st_nlink > 1;
    return {};
  });
  if (!moved) return std::unexpected(moved.error());
  return aside;
}

Outcome<void> BlobStore::bring_back(const Digest& digest, bool everywhere) const {
  const std::string name(digest.hex()), hidden = aside_name(digest);
  return in_every_root(digest, everywhere, [&](const Directory& blobs) -> Outcome<void> {
    const Outcome<void> moved = blobs.move_no_replace(hidden, blobs, name);
    if (moved || moved.error().code == ErrorClass::not_found) return {};
    // Published anew meanwhile: the same bytes.
    if (moved.error().code == ErrorClass::already_exists) return blobs.remove_file(hidden);
    return moved;
  });
}

Outcome<void> BlobStore::remove_aside(const Digest& digest, bool everywhere) const {
  return in_every_root(digest, everywhere,
                       [&](const Directory& blobs) { return blobs.remove_file(aside_name(digest)); });
}

Outcome<void> BlobStore::put_damaged_away(const Digest& digest) const {
  const Outcome<Directory> away = root_.open_or_make("damaged");
  if (!away) return std::unexpected(away.error());
  const std::string name = fmt::format("{}.{}", digest.hex().substr(0, 64), node_);
  return in_every_root(digest, false, [&](const Directory& blobs) -> Outcome<void> {
    if (const Outcome<void> removed = away->remove_file(name); !removed) return removed;
    const Outcome<void> moved = blobs.move_no_replace(std::string(digest.hex()), *away, name);
    if (moved || moved.error().code == ErrorClass::not_found) return {};
    return moved;
  });
}

}  // namespace turnstile::content
