// The content store as containerd sees it, without gRPC: blobs on the disk, this node's set of them, and
// arbitration, put together by the rules of docs/decisions/0020-content-plugin-shape.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "content/arbiter.h"
#include "content/blob_store.h"
#include "content/damaged_elsewhere.h"
#include "content/filter.h"
#include "content/key_locks.h"
#include "content/lives.h"
#include "content/metrics.h"
#include "content/node_state.h"
#include "content/open_blobs.h"
#include "content/verification.h"

namespace turnstile::content {

// Eight of the nine calls; the ninth, Write, is a WriteSession each.
//
// Threads: any. Invariant: a blob in the node's set lies in some root (a crash in between is put right by
// start()); what is not in the set is not shown, wherever it lies.
class ContentStore {
 public:
  ContentStore(BlobStore blobs, std::unique_ptr<NodeState> state, std::unique_ptr<Arbiter> arbiter,
               std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>(), Lives::Options options = {});

  // Makes the node's set agree with the disk after a crash. To be called once, before anything else.
  Outcome<void> start();
  // From now on a thread does what may take long, where there is a server to be asked.
  void start_thread();

  Outcome<BlobInfo> info(const Digest& digest) const;
  // `mask`: "labels" (all of them) or "labels.<key>" (one; an empty value deletes it); none: all labels.
  Outcome<BlobInfo> update(const Digest& digest, const Labels& labels, const std::vector<std::string>& mask);
  std::vector<BlobInfo> list(const Filter& filter) const;
  // What it keeps although it does not use it, too.
  std::vector<BlobInfo> all() const { return state_->all(); }
  NodeState::Totals totals(Stage stage = Stage::in_use) const { return state_->totals(stage); }
  Lives& lives() { return lives_; }
  const Lives& lives() const { return lives_; }
  const BlobStore& blobs() const { return blobs_; }
  // Ends this node's use of it; the blob itself goes when nobody uses it. A blob that is not there is fine.
  Outcome<void> remove(const Digest& digest);
  Outcome<std::shared_ptr<const OpenBlob>> open(const Digest& digest);
  // Like open(), but never waits for the disk: none when it is not open already.
  std::shared_ptr<const OpenBlob> find_open(const Digest& digest);

  // Does what can be done about a blob that was found not to be well, and forgets descriptors that hide it.
  enum class Mending : uint8_t {
    needless,   // it is not in use any more, or was put right
    done,       // put away, or published again; or nothing can be done
    elsewhere,  // its damaged file stays where it is, on another node's disk
    failed,
  };
  Mending mend(const Finding& finding);

  Outcome<IngestStatus> status(const std::string& ref) const { return blobs_.ingest_status(ref); }
  Outcome<std::vector<IngestStatus>> statuses(const Filter& filter) const;
  Outcome<void> abort(const std::string& ref) const { return blobs_.drop_ingest(ref); }

 private:
  friend class WriteSession;
  // Whether this node has it, in its set and on the disk.
  bool has(const Digest& digest) const;
  // Of a file that holds other bytes: nobody uses it any more. False: nobody here does, for it lies on
  // another node's disk.
  Outcome<bool> put_away(const Digest& digest, const OpenBlob& seen);

  const BlobStore blobs_;
  const std::unique_ptr<NodeState> state_;
  const std::unique_ptr<Arbiter> arbiter_;
  const std::shared_ptr<Metrics> metrics_;
  KeyLocks refs_;     // one writer for each
  KeyLocks digests_;  // commit and removal of one blob do not overlap
  OpenBlobs open_blobs_;
  DamagedElsewhere damaged_elsewhere_;
  Lives lives_;  // last: its thread uses the others
};

// Error invalid_argument when one is longer than containerd allows.
Outcome<void> check_labels(const Labels& labels);

}  // namespace turnstile::content
