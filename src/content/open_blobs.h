// Blobs that are open for reading: containerd reads 32 KiB at a time, one call each, and a call should cost
// no path look-up.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/sync.h"
#include "content/blob_store.h"

namespace turnstile::content {

// The blobs that were read last, open.
//
// Threads: any. A blob that falls out stays open for those that are reading it. Time: what a descriptor shows
// may be a second old; then its name is looked at again, for the file may have been replaced, or put away
// because it holds other bytes. While it is being read, a name that is missing is looked for once more a
// second later: a removal that is given up hides a file for a moment.
class OpenBlobs {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  explicit OpenBlobs(
      const BlobStore& store, size_t limit = kLimit, Now now = [] { return Clock::now(); })
      : store_(store), limit_(limit), now_(std::move(now)) {}

  Outcome<std::shared_ptr<const OpenBlob>> open(const Digest& digest);
  // None: it is not open, or its name must be looked at.
  std::shared_ptr<const OpenBlob> find_open(const Digest& digest);
  void forget(const Digest& digest);

 private:
  static constexpr size_t kLimit = 256;
  static constexpr std::chrono::seconds kLookAgain{1};
  struct Entry {
    std::string digest;
    std::shared_ptr<const OpenBlob> blob;
    Clock::time_point looked;                  // at its name
    std::optional<Clock::time_point> missing;  // since when it was not found
  };
  using Place = std::list<Entry>::iterator;
  static bool is_current(Entry& entry, const Outcome<OpenBlob>& found, Clock::time_point now);
  void erase(Place entry) TS_REQUIRES(mutex_);

  const BlobStore& store_;
  const size_t limit_;
  const Now now_;
  Mutex mutex_;
  std::list<Entry> entries_ TS_GUARDED_BY(mutex_);  // the last read first
  std::unordered_map<std::string_view, Place> places_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
