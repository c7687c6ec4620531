// Blobs and ingests on the disk.
//
//   <root>/blobs/<algorithm>/<hex>                 a published blob: complete, verified, never changed
//   <root>/ingest/<node>/<sha256 of the ref>/      a blob that is being written by this node
//       data                                       the bytes so far
//       about                                      when it was begun, total, expected digest, and the ref
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

  // In this node's root first, then in the read roots. Error not_found.
  Outcome<OpenBlob> find(const Digest& digest) const;
  // Then what is not found now may still be there: a part of a mount can be away for a while.
  bool has_read_roots() const { return !read_roots_.empty(); }
  // Takes the blob out of this node's root, or out of every root in which it lies. Missing is fine; a read
  // root that is not mounted is an error.
  Outcome<void> remove(const Digest& digest, bool everywhere) const;

  // The ingest of `ref`, made if there is none. One that is damaged or of another size is begun anew.
  Outcome<Ingest> open_ingest(const std::string& ref, int64_t total, const std::string& expected) const;
  // Makes the ingest's data the blob `digest`: durable, at once, never over a blob that is there (error
  // already_exists). The ingest is gone afterwards in both cases.
  Outcome<void> publish(const Ingest& ingest, const Digest& digest) const;
  Outcome<void> drop_ingest(const std::string& ref) const;  // missing is fine

  Outcome<IngestStatus> ingest_status(const std::string& ref) const;  // error not_found
  Outcome<std::vector<IngestStatus>> ingests() const;
  // Removes what a crash left of ingests that can not be resumed; returns how many.
  Outcome<size_t> clean_ingests() const;

 private:
  BlobStore(Directory root, Directory ingests, std::vector<std::string> read_roots)
      : root_(std::move(root)), ingests_(std::move(ingests)), read_roots_(std::move(read_roots)) {}
  Outcome<IngestStatus> read_ingest(const std::string& name) const;
  Outcome<Ingest> begin_ingest(const std::string& name, IngestStatus status) const;

  Directory root_;
  Directory ingests_;  // <root>/ingest/<node>
  // Paths, opened for each look: a mount that comes late, or comes again, is then seen.
  std::vector<std::string> read_roots_;
};

// Whether a node's name can name its ingest directory.
bool is_plain_name(std::string_view node);

}  // namespace turnstile::content
