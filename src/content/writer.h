// Writing one blob: open, write, commit, close.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "content/blob_store.h"
#include "content/hasher.h"
#include "content/key_locks.h"

namespace turnstile::content {

// The one writer of a ref. What it has written survives it, and the next writer of that ref goes on there.
//
// The bytes are written at once but hashed when there is time: a caller that answers its client between
// write() and catch_up() hashes while the client prepares the next message. Whatever was not hashed by then
// is read back from the file, so that a caller may also never call catch_up(). Not its job: labels,
// references, and whether this node may write; the caller settles these between verify() and publish().
// Threads: one at a time. Invariant: the first `hashed_` bytes of the file are in the hash; hashed_ <=
// offset.
class Writer {
 public:
  // Takes the ref (error unavailable when another stream has it) and resumes its ingest, if there is one.
  static Outcome<std::unique_ptr<Writer>> open(const BlobStore& store, KeyLocks& locks,
                                               const std::string& ref, int64_t total,
                                               const std::string& expected);
  ~Writer() { close(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  const IngestStatus& status() const { return ingest_.status; }

  // At the end of what is there; or at 0, which throws away what is there. Else error out_of_range.
  Outcome<void> write(int64_t offset, std::string_view data);
  // Hashes what has been written and not been hashed yet. `last`: the bytes of the last write, if still at
  // hand.
  Outcome<void> catch_up(std::string_view last = {});
  // sha256 of the bytes so far. None while hashing them would take long (a large ingest that was resumed):
  // then the caller answers first and calls catch_up().
  Outcome<std::optional<Digest>> digest_so_far();

  // The digest of everything, if it is `expected` (when given) and the size is `total` (when > 0). Else error
  // failed_precondition; the data stays, and may be committed again.
  Outcome<Digest> verify(int64_t total, const std::optional<Digest>& expected);
  // After verify(): makes it a blob. Error already_exists: somebody was faster; the ingest is gone then, too.
  // It is also gone when its bytes could not be synced.
  Outcome<void> publish(const Digest& digest);
  // Throws the ingest away.
  Outcome<void> drop();

  // Keeps what was written, for the next writer, and frees the ref. Repeating it is harmless.
  void close();

 private:
  Outcome<void> close_and_drop();
  Writer(const BlobStore& store, KeyLocks::Held held, Ingest ingest);
  Outcome<void> truncate();
  Outcome<void> check_open() const;
  void start_write_back();

  const BlobStore& store_;
  std::optional<KeyLocks::Held> held_;
  Ingest ingest_;
  Hasher hasher_{Algorithm::sha256};
  int64_t hashed_ = 0;
  int64_t write_back_ = 0;  // up to here the kernel was told to begin writing to the disk
};

}  // namespace turnstile::content
