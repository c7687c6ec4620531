// Blobs that are open for reading: containerd reads 32 KiB at a time, one call each, and a call should cost
// no path look-up.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "base/sync.h"
#include "content/blob_store.h"

namespace turnstile::content {

// The blobs that were read last, open.
//
// Threads: any. A blob that falls out stays open for those that are reading it.
class OpenBlobs {
 public:
  explicit OpenBlobs(const BlobStore& store, size_t limit = kLimit) : store_(store), limit_(limit) {}

  Outcome<std::shared_ptr<const OpenBlob>> open(const Digest& digest);
  // None: it is not open.
  std::shared_ptr<const OpenBlob> find_open(const Digest& digest);
  void forget(const Digest& digest);

 private:
  static constexpr size_t kLimit = 256;
  struct Entry {
    std::string digest;
    std::shared_ptr<const OpenBlob> blob;
  };

  const BlobStore& store_;
  const size_t limit_;
  Mutex mutex_;
  std::list<Entry> entries_ TS_GUARDED_BY(mutex_);  // the last read first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
