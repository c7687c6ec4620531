// Removing blobs: the half of BlobStore that takes away what others might have begun to use.
//
// The name that others look for is changed first. From then on nobody can begin to use the blob, so whoever
// finds out now that it may not be removed (the right to it has run out; a node has a second name for it)
// brings it back, and whoever finds that it may can take all the time it likes.
#include <fmt/format.h>

#include "content/blob_store.h"
#include "content/pause.h"

namespace turnstile::content {

// Part of a digest is enough, and leaves room for the node's name.
std::string BlobStore::aside_name(const Digest& digest) const {
  return fmt::format(".leaving.{}.{}", digest.hex().substr(0, 32), node_);
}

Outcome<void> BlobStore::in_every_root(
    const Digest& digest, bool everywhere,
    const std::function<Outcome<void>(const Directory&, const Directory&)>& visit) const {
  const auto visit_root = [&](const Directory& root) -> Outcome<void> {
    const Outcome<Directory> directory = root.open(blob_directory(digest));
    if (directory) return visit(root, *directory);
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

// Who uses what lies aside, whatever the lock server knows.
Outcome<void> BlobStore::find_users(const Directory& root, const Directory& blobs, const Digest& digest,
                                    Aside& aside) const {
  const size_t before = aside.users.size();
  if (guards_all()) {
    const Outcome<uint64_t> names = blobs.names_of(aside_name(digest));
    if (!names) return std::unexpected(names.error());
    if (*names <= 1) return {};
    aside.in_use = true;
  }
  const Outcome<Directory> uses = root.open("uses");
  if (!uses && uses.error().code == ErrorClass::not_found) return {};
  if (!uses) return std::unexpected(uses.error());
  Outcome<void> looked;
  const Outcome<void> walked = uses->for_each([&](const std::string& node) {
    const Outcome<uint64_t> names =
        uses->names_of(fmt::format("{}/{}/{}", node, name_of(digest.algorithm()), digest.hex()));
    if (!names) looked = std::unexpected(names.error());  // whoever cannot be seen may be there
    if (names && *names > 0) aside.users.push_back(node);
  });
  // Where there are read roots, a file may have several names for other reasons.
  aside.in_use |= aside.users.size() > before;
  return walked ? looked : walked;
}

Outcome<BlobStore::Aside> BlobStore::put_aside(const Digest& digest, bool everywhere) const {
  Aside aside;
  const std::string name(digest.hex()), hidden = aside_name(digest);
  const Outcome<void> moved =
      in_every_root(digest, everywhere, [&](const Directory& root, const Directory& blobs) -> Outcome<void> {
        // One that is aside already holds the same bytes.
        const Outcome<void> done = blobs.move(name, blobs, hidden);
        if (!done && done.error().code != ErrorClass::not_found) return done;
        return find_users(root, blobs, digest, aside);
      });
  if (!moved) return std::unexpected(moved.error());
  return aside;
}

Outcome<bool> BlobStore::take_second_name(const std::string& node, const Digest& digest,
                                          const std::string& life) const {
  const Outcome<Directory> uses = root_.open("uses/" + node);
  if (!uses) return std::unexpected(uses.error());
  const Outcome<Directory> names = uses->open(std::string(name_of(digest.algorithm())));
  if (!names) return std::unexpected(names.error());
  const auto has_told = [&] {
    const Outcome<std::string> by = uses->read_small("confirmed-by", 256);
    return by && *by == life && !life.empty();
  };
  if (!has_told()) return false;
  // The same in small: that node may just now begin a use that nobody confirms. It takes its word back first
  // and looks at its name then; so one of us sees the other.
  const std::string name(digest.hex()), hidden = aside_name(digest);
  pause("before another's second name is taken");
  const Outcome<void> moved = names->move(name, *names, hidden);
  if (!moved) return std::unexpected(moved.error());
  pause("behind it");
  if (has_told()) {
    if (const Outcome<void> removed = names->remove_file(hidden); !removed)
      return std::unexpected(removed.error());
    return true;
  }
  if (const Outcome<void> back = names->move(hidden, *names, name); !back)
    return std::unexpected(back.error());
  return false;
}

Outcome<void> BlobStore::set_confirmed_by(const std::string& life) const {
  const std::string name = "confirmed-by", other = ".confirmed-by";
  if (life.empty()) {
    if (const Outcome<void> removed = uses_.remove_file(name); !removed) return removed;
    return uses_.sync();
  }
  const Outcome<UniqueFd> file = uses_.open_file(other, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file) return std::unexpected(file.error());
  if (const Outcome<void> written = write_at(file->get(), 0, life, uses_.path() + "/" + other); !written)
    return written;
  return uses_.move(other, uses_, name);
}

Outcome<void> BlobStore::bring_back(const Digest& digest, bool everywhere) const {
  const std::string name(digest.hex()), hidden = aside_name(digest);
  const auto bring_back_in = [&](const Directory& directory) -> Outcome<void> {
    const Outcome<void> moved = directory.move_no_replace(hidden, directory, name);
    if (moved || moved.error().code == ErrorClass::not_found) return {};
    // There again meanwhile: the same bytes.
    if (moved.error().code == ErrorClass::already_exists) return directory.remove_file(hidden);
    return moved;
  };
  // Second names that were being taken, too.
  if (const Outcome<Directory> uses = root_.open("uses")) {
    Outcome<void> failed;
    const Outcome<void> walked = uses->for_each([&](const std::string& node) {
      const Outcome<Directory> names = uses->open(fmt::format("{}/{}", node, name_of(digest.algorithm())));
      if (!names) return;
      if (const Outcome<void> back = bring_back_in(*names); !back) failed = back;
    });
    if (!walked) return walked;
    if (!failed) return failed;
  }
  return in_every_root(digest, everywhere,
                       [&](const Directory&, const Directory& blobs) { return bring_back_in(blobs); });
}

Outcome<void> BlobStore::remove_aside(const Digest& digest, bool everywhere) const {
  return in_every_root(digest, everywhere, [&](const Directory&, const Directory& blobs) {
    return blobs.remove_file(aside_name(digest));
  });
}

namespace {

// Whoever has a second name for a damaged file would publish it again.
Outcome<void> remove_second_names(const Directory& root, const Digest& digest, const FileId& of) {
  const Outcome<Directory> uses = root.open("uses");
  if (!uses) return std::unexpected(uses.error());
  Outcome<void> result;
  const Outcome<void> walked = uses->for_each([&](const std::string& node) {
    const Outcome<Directory> names = uses->open(fmt::format("{}/{}", node, name_of(digest.algorithm())));
    if (!names) return;
    const std::string name(digest.hex());
    const Outcome<UniqueFd> file = names->open_file(name, O_RDONLY);
    if (!file) return;
    const Outcome<struct stat> status = look_at(file->get());
    if (!status || id_of(*status) != of) return;
    if (const Outcome<void> removed = names->remove_file(name); !removed) result = removed;
  });
  return walked ? result : walked;
}

}  // namespace

Outcome<bool> BlobStore::put_damaged_away(const Digest& digest, const OpenBlob& seen) const {
  const Outcome<Directory> away = root_.open_or_make("damaged");
  if (!away) return std::unexpected(away.error());
  const Outcome<Directory> blobs = root_.open(blob_directory(digest));
  if (!blobs) return std::unexpected(blobs.error());
  const std::string name(digest.hex());
  const std::string kept = fmt::format("{}.{}", digest.hex().substr(0, 64), node_);
  if (const Outcome<void> removed = away->remove_file(kept); !removed)
    return std::unexpected(removed.error());
  const Outcome<void> moved = blobs->move_no_replace(name, *away, kept);
  if (!moved && moved.error().code != ErrorClass::not_found) return std::unexpected(moved.error());
  bool is_away = false;
  if (moved) {
    const Outcome<UniqueFd> file = away->open_file(kept, O_RDONLY);
    const Outcome<struct stat> found = file ? look_at(file->get()) : std::unexpected(file.error());
    is_away = found && id_of(*found) == seen.file;
    // It has been put right since it was looked at.
    if (!is_away)
      if (const Outcome<void> back = away->move_no_replace(kept, *blobs, name);
          !back && back.error().code != ErrorClass::already_exists)
        return std::unexpected(back.error());
  }
  if (const Outcome<void> removed = remove_second_names(root_, digest, seen.file); !removed)
    return std::unexpected(removed.error());
  return is_away;
}

}  // namespace turnstile::content
