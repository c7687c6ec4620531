// Published blobs: finding, publishing, and their second names. Ingests are in ingest.cc, removing is in
// blob_removal.cc.
#include "content/blob_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace turnstile::content {

std::string blob_directory(const Digest& digest) {
  return fmt::format("blobs/{}", name_of(digest.algorithm()));
}

namespace {

bool knows_links(const Directory& directory) {
  const std::string one = ".one", two = ".two";
  for (const std::string& name : {one, two}) (void)directory.remove_file(name);
  const bool made = directory.open_file(one, O_WRONLY | O_CREAT, 0600).has_value();
  const Outcome<bool> linked = made ? directory.link(one, directory, two) : false;
  for (const std::string& name : {one, two}) (void)directory.remove_file(name);
  return linked && *linked;
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
  const std::string uses = "uses/" + roots.node;
  for (const std::string& made :
       {std::string("blobs"), std::string("blobs/sha256"), std::string("blobs/sha512"), std::string("ingest"),
        std::string("uses"), uses, uses + "/sha256", uses + "/sha512"}) {
    const Outcome<Directory> there = root->open_or_make(made);
    if (!there) return std::unexpected(there.error());
  }
  for (const std::string& changed : {uses, std::string("uses"), std::string("blobs"), std::string(".")})
    if (const Outcome<void> synced = root->open(changed)->sync(); !synced)
      return std::unexpected(synced.error());
  Outcome<Directory> ingests = root->open_or_make("ingest/" + roots.node);
  if (!ingests) return std::unexpected(ingests.error());
  for (const std::string& path : roots.read_roots) {
    const Outcome<Directory> opened = Directory::open_root(path, false);
    if (!opened) return std::unexpected(opened.error());
    if (!opened->open("blobs")) log_warning("a --read-root is empty: is it mounted?", {{"directory", path}});
  }
  Outcome<Directory> own = root->open(uses);
  if (!own) return std::unexpected(own.error());
  BlobStore store(std::move(*root), std::move(*ingests), std::move(*own), roots);
  store.can_link_ = knows_links(store.uses_);
  if (!store.can_link_)
    log_warning("no hard links here: what this node uses is safe only while the lock server counts it",
                {{"directory", roots.root}});
  return store;
}

Outcome<BlobStore> BlobStore::open_to_look(const Roots& roots) {
  if (!is_plain_name(roots.node)) return fail(ErrorClass::invalid_argument, "the node's name is none");
  Outcome<Directory> root = Directory::open_root(roots.root, false);
  if (!root) return std::unexpected(root.error());
  Outcome<Directory> ingests = root->open("ingest/" + roots.node);
  if (!ingests) return std::unexpected(ingests.error());
  Outcome<Directory> uses = root->open("uses/" + roots.node);
  if (!uses) return std::unexpected(uses.error());
  return BlobStore(std::move(*root), std::move(*ingests), std::move(*uses), roots);
}

namespace {

Outcome<OpenBlob> open_blob(const Directory& directory, const std::string& path) {
  Outcome<UniqueFd> fd = directory.open_file(path, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  const Outcome<struct stat> status = look_at(fd->get());
  if (!status) return std::unexpected(status.error());
  return OpenBlob{std::move(*fd), status->st_size, id_of(*status)};
}

std::string use_of(const Digest& digest) {
  return fmt::format("{}/{}", name_of(digest.algorithm()), digest.hex());
}

}  // namespace

Outcome<OpenBlob> BlobStore::find_published(const Digest& digest) const {
  const std::string path = fmt::format("{}/{}", blob_directory(digest), digest.hex());
  Outcome<OpenBlob> found = open_blob(root_, path);
  if (found) found->is_own = true;
  for (size_t i = 0; !found && i < read_roots_.size(); ++i) {
    // Trouble in one root must not hide that the blob lies in another.
    if (found.error().code != ErrorClass::not_found)
      log_warning("looking for a blob", {{"error", found.error().message}});
    const Outcome<Directory> root = Directory::open_root(read_roots_[i], false);
    found = root ? open_blob(*root, path) : std::unexpected(root.error());
  }
  if (!found && found.error().code == ErrorClass::not_found)
    return fail(ErrorClass::not_found, fmt::format("content {}: not found", digest.text()));
  return found;
}

Outcome<OpenBlob> BlobStore::find(const Digest& digest) const {
  Outcome<OpenBlob> found = find_published(digest);
  if (found || found.error().code != ErrorClass::not_found) return found;
  Outcome<OpenBlob> own = open_blob(uses_, use_of(digest));
  return own ? std::move(own) : std::move(found);
}

// ---- Second names.

Outcome<bool> BlobStore::guard(const Digest& digest) const {
  const Outcome<Directory> from = root_.open(blob_directory(digest));
  if (!from) return std::unexpected(from.error());
  const Outcome<Directory> to = uses_.open(std::string(name_of(digest.algorithm())));
  if (!to) return std::unexpected(to.error());
  const std::string name(digest.hex());
  Outcome<bool> linked = from->link(name, *to, name);
  if (!linked && linked.error().code == ErrorClass::already_exists) {
    // Of an earlier life, or of an ingest of our own that came too late: it may be another file by now.
    if (const Outcome<void> removed = to->remove_file(name); !removed)
      return std::unexpected(removed.error());
    linked = from->link(name, *to, name);
  }
  if (!linked && linked.error().code == ErrorClass::not_found && has_read_roots()) {
    if (const Outcome<OpenBlob> elsewhere = find_published(digest); !elsewhere)
      return std::unexpected(elsewhere.error());
    return false;
  }
  if (!linked || !*linked) return linked;
  if (const Outcome<void> synced = to->sync(); !synced) return std::unexpected(synced.error());
  return true;
}

bool BlobStore::is_guarded(const Digest& digest) const {
  return open_blob(uses_, use_of(digest)).has_value();
}

Outcome<void> BlobStore::unguard(const Digest& digest) const {
  const Outcome<Directory> uses = uses_.open(std::string(name_of(digest.algorithm())));
  if (!uses) return std::unexpected(uses.error());
  return uses->remove_file(std::string(digest.hex()));
}

Outcome<std::vector<Digest>> BlobStore::guarded() const {
  std::vector<Digest> all;
  for (const Algorithm algorithm : {Algorithm::sha256, Algorithm::sha512}) {
    const std::string name(name_of(algorithm));
    const Outcome<Directory> uses = uses_.open(name);
    if (!uses) return std::unexpected(uses.error());
    const Outcome<void> walked = uses->for_each([&](const std::string& file) {
      if (const Outcome<Digest> digest = Digest::parse(fmt::format("{}:{}", name, file)))
        all.push_back(*digest);
    });
    if (!walked) return std::unexpected(walked.error());
  }
  return all;
}

Outcome<void> BlobStore::publish_again(const Digest& digest) const {
  const Outcome<Directory> from = uses_.open(std::string(name_of(digest.algorithm())));
  if (!from) return std::unexpected(from.error());
  const Outcome<Directory> to = root_.open(blob_directory(digest));
  if (!to) return std::unexpected(to.error());
  const Outcome<bool> linked = from->link(std::string(digest.hex()), *to, std::string(digest.hex()));
  if (linked && *linked) return to->sync();
  if (linked || linked.error().code == ErrorClass::already_exists) return {};
  return std::unexpected(linked.error());
}

// ---- Publishing.

Outcome<bool> BlobStore::take_over(const Directory& from, const std::string& file,
                                   const Digest& digest) const {
  const Outcome<UniqueFd> data = from.open_file(file, O_RDONLY);
  if (!data) return std::unexpected(data.error());
  if (::fsync(data->get()) != 0) {
    // The next try must read, and hash, what is on the disk and not what was to be written there.
    const int error = errno;
    (void)::posix_fadvise(data->get(), 0, 0, POSIX_FADV_DONTNEED);
    return fail_errno("sync", digest.text(), error);
  }
  if (::fchmod(data->get(), 0444) != 0) return fail_errno("change the mode of", digest.text(), errno);
  const Outcome<Directory> uses = uses_.open(std::string(name_of(digest.algorithm())));
  if (!uses) return std::unexpected(uses.error());
  const std::string name(digest.hex());
  if (const Outcome<void> removed = uses->remove_file(name); !removed)
    return std::unexpected(removed.error());
  const Outcome<bool> linked = from.link(file, *uses, name);
  if (!linked || !*linked) return linked;
  if (const Outcome<void> synced = uses->sync(); !synced) return std::unexpected(synced.error());
  if (const Outcome<void> published = publish_again(digest); !published)
    return std::unexpected(published.error());
  return true;
}

// The kernel tells of a failed write once, and takes the pages for written from then on.
std::unexpected<ContentError> BlobStore::throw_away_unsynced(Ingest& ingest, const Digest& digest,
                                                             int error) const {
  ContentError failed = fail_errno("sync", digest.text(), error).error();
  failed.message += ": what was written is thrown away; look after the disk of --root, then pull it again";
  (void)::ftruncate(ingest.data.get(), 0);  // should its directory stay
  ingest.data.reset();
  if (const Outcome<void> removed = ingests_.remove_directory(ingest.name); !removed)
    log_warning("an ingest could not be removed", {{"error", removed.error().message}});
  return std::unexpected(std::move(failed));
}

Outcome<void> BlobStore::publish(Ingest& ingest, const Digest& digest) const {
  if (::fsync(ingest.data.get()) != 0) return throw_away_unsynced(ingest, digest, errno);
  const Outcome<Directory> from = ingests_.open(ingest.name);
  if (!from) return std::unexpected(from.error());
  const Outcome<Directory> to = root_.open(blob_directory(digest));
  if (!to) return std::unexpected(to.error());
  const Outcome<Directory> uses = uses_.open(std::string(name_of(digest.algorithm())));
  if (!uses) return std::unexpected(uses.error());
  // Read-only from here on, and readable for other nodes.
  if (::fchmod(ingest.data.get(), 0444) != 0) return fail_errno("change the mode of", digest.text(), errno);
  const std::string name(digest.hex());
  // The second name first: there is no moment at which others could remove the blob without seeing that it is
  // used. Where the file system cannot, the caller finds that it is not guarded.
  if (const Outcome<void> removed = uses->remove_file(name); !removed) return removed;
  if (const Outcome<bool> linked = from->link("data", *uses, name); !linked)
    return std::unexpected(linked.error());
  const Outcome<void> moved = from->move_no_replace("data", *to, name);
  if (!moved) {
    const Outcome<void> undone = uses->remove_file(name);
    if (moved.error().code != ErrorClass::already_exists) {
      ::fchmod(ingest.data.get(), 0600);
      return moved;
    }
    if (!undone) return undone;
  }
  if (const Outcome<void> synced = uses->sync(); !synced) return synced;
  if (const Outcome<void> synced = to->sync(); !synced) return synced;
  return moved;
}

}  // namespace turnstile::content
