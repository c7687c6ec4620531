// Blobs and ingests on the disk.
//
//   <root>/blobs/<algorithm>/<hex>                 a published blob: complete, verified, never changed
//   <root>/ingest/<node>/<sha256 of the ref>/      a blob that is being written by this node
//       data                                       the bytes so far
//       about                                      when it was begun, total, expected digest, and the ref
//   <root>/uses/<node>/<algorithm>/<hex>           a second name of a blob that this node uses
//   <root>/uses/<node>/confirmed-by                the life of the lock server that counts all of them
//   <root>/uses/<node>/owner                       whose --state knows these uses, and on which machine
//   <root>/blobs/<algorithm>/.leaving.<hex…>.<node>  a blob that this node is removing
//   <root>/damaged/<hex>.<node>                    what was found under a blob's name and is not that blob
// Other nodes' roots, or one mount that shows them all, are read roots: blobs are looked for there, too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "content/digest.h"
#include "content/directory.h"
#include "content/timestamp.h"

namespace turnstile::content {

struct OpenBlob {
  UniqueFd fd;
  int64_t size = 0;
  FileId file{};
  bool is_own = false;  // lies in this node's root
};

// What is known about an ingest; all of it is on the disk, so that it outlives the plugin.
struct IngestStatus {
  std::string ref;
  Timestamp started, updated;
  int64_t offset = 0;    // bytes there
  int64_t total = 0;     // 0: not known
  std::string expected;  // empty: not known
};

// An ingest, opened for writing by its one Writer.
struct Ingest {
  std::string name;  // of its directory
  UniqueFd data;
  IngestStatus status;
};

// Which files there are; knows nothing of who uses a blob or who may write it.
//
// Threads: any; all state is on the disk. That one ref has one Writer at a time is the caller's duty.
// Invariant: only publish() puts something into blobs/, and its caller has verified the digest.
class BlobStore {
 public:
  struct Roots {
    std::string root;
    std::vector<std::string> read_roots;
    std::string node;  // letters, digits, '.', '_' and '-': it names a directory
    // This node has blobs: then a root without our directories is a disk that is not mounted (error
    // failed_precondition), and nothing must be made where it should be.
    bool used = false;
  };
  static Outcome<BlobStore> open(const Roots& roots);
  // For those that only look: makes nothing. Error not_found when no plugin has run on this root.
  static Outcome<BlobStore> open_to_look(const Roots& roots);

  // In this node's root first, then in the read roots, then under its own second name. Error not_found.
  Outcome<OpenBlob> find(const Digest& digest) const;
  // The same, without the second name: what the other nodes see, too.
  Outcome<OpenBlob> find_published(const Digest& digest) const;
  // Then what is not found now may still be there: a part of a mount can be away for a while.
  bool has_read_roots() const { return !read_roots_.empty(); }

  // A second name: while it is there, nobody can take the bytes from this node, and whoever would remove the
  // blob sees that it is in use (blob_removal.cc). False: the file system cannot, or the blob lies on another
  // node's disk. Error not_found: no root has it.
  Outcome<bool> guard(const Digest& digest) const;
  bool is_guarded(const Digest& digest) const;
  // Whether every node that uses a blob of this root can have a second name for it.
  bool guards_all() const { return can_link_ && read_roots_.empty(); }
  Outcome<void> unguard(const Digest& digest) const;  // missing is fine
  Outcome<std::vector<Digest>> guarded() const;
  // Publishes what this node has under its second name and nobody else sees any more.
  Outcome<void> publish_again(const Digest& digest) const;

  // Removing has two steps, so that a right that has run out in between does no harm: what was put aside can
  // be brought back, and nobody can begin to use it meanwhile. All three may be repeated.
  struct Aside {
    bool in_use = false;             // it has a second name
    std::vector<std::string> users;  // whose; those that can be seen
  };
  // Out of this node's root, or out of every root in which it lies. Missing is fine; a read root that is not
  // mounted is an error, and then some of it may be aside.
  Outcome<Aside> put_aside(const Digest& digest, bool everywhere) const;
  Outcome<void> bring_back(const Digest& digest, bool everywhere) const;
  Outcome<void> remove_aside(const Digest& digest, bool everywhere) const;
  // Takes the second name from a node that has told the server of this life of all its uses, and is not
  // counted by it any more: people have released it. Between put_aside() and remove_aside(). False: it has
  // not told.
  Outcome<bool> take_second_name(const std::string& node, const Digest& digest,
                                 const std::string& life) const;
  // This node's second names belong to one --state (`id`), which knows what they are for. Error
  // failed_precondition: to that of another machine, whose name is in the message; resource_exhausted: to
  // nobody else, but that cannot be written down now. May be repeated.
  Outcome<void> take_possession(const std::string& id, const std::string& machine) const;
  // Says of this node's second names that this life of the server counts them all. Empty: not all of them.
  Outcome<void> set_confirmed_by(const std::string& life) const;

  // Moves what lies under a blob's name in this node's root, but is not that blob (`seen` is open on it), to
  // where people can look at it; nobody has a second name for it afterwards. False: it is not there, but in a
  // root of another node's, or there is another file by now.
  Outcome<bool> put_damaged_away(const Digest& digest, const OpenBlob& seen) const;
  // Makes `file`, which the caller has verified, this blob, without a copy: its name in `from` stays. False:
  // it lies on another file system, or there are no links.
  Outcome<bool> take_over(const Directory& from, const std::string& file, const Digest& digest) const;

  // The ingest of `ref`, made if there is none. One that is damaged or of another size is begun anew.
  Outcome<Ingest> open_ingest(const std::string& ref, int64_t total, const std::string& expected) const;
  // Makes the ingest's data the blob `digest`: durable, at once, never over a blob that is there (error
  // already_exists). The ingest is gone afterwards in both cases, and the blob is guarded if it can be.
  // Closed and gone, too, when its bytes could not be synced: a second sync would say that all is well.
  Outcome<void> publish(Ingest& ingest, const Digest& digest) const;
  Outcome<void> drop_ingest(const std::string& ref) const;  // missing is fine

  Outcome<IngestStatus> ingest_status(const std::string& ref) const;  // error not_found
  Outcome<std::vector<IngestStatus>> ingests() const;
  // Removes what a crash left of ingests that can not be resumed; returns how many.
  Outcome<size_t> clean_ingests() const;

 private:
  BlobStore(Directory root, Directory ingests, Directory uses, const Roots& roots)
      : root_(std::move(root)),
        ingests_(std::move(ingests)),
        uses_(std::move(uses)),
        read_roots_(roots.read_roots),
        node_(roots.node) {}
  // For every root, this node's own first: `visit(root, directory of the blob)`. An error of one does not
  // keep the others from being visited; a root without our directories is an error, too.
  Outcome<void> in_every_root(
      const Digest& digest, bool everywhere,
      const std::function<Outcome<void>(const Directory&, const Directory&)>& visit) const;
  Outcome<void> find_users(const Directory& root, const Directory& blobs, const Digest& digest,
                           Aside& aside) const;
  std::string aside_name(const Digest& digest) const;
  std::unexpected<ContentError> throw_away_unsynced(Ingest& ingest, const Digest& digest, int error) const;
  Outcome<IngestStatus> read_ingest(const std::string& name) const;
  Outcome<Ingest> begin_ingest(const std::string& name, IngestStatus status) const;

  Directory root_;
  Directory ingests_;  // <root>/ingest/<node>
  Directory uses_;     // <root>/uses/<node>
  // Paths, opened for each look: a mount that comes late, or comes again, is then seen.
  std::vector<std::string> read_roots_;
  std::string node_;
  bool can_link_ = false;
};

std::string blob_directory(const Digest& digest);

// Whether a node's name can name its ingest directory.
bool is_plain_name(std::string_view node);

}  // namespace turnstile::content
