// Files on other nodes' disks that hold other bytes than their names promise. They cannot be put away from
// here, so it is remembered that they must not be used.
#pragma once

#include <map>

#include "base/sync.h"
#include "content/blob_store.h"

namespace turnstile::content {

// Not over a restart: what is small is hashed again, and the rest is read again by --verify-every. Threads:
// any.
class DamagedElsewhere {
 public:
  // False: it was known.
  bool note(const Digest& digest, const OpenBlob& seen) {
    const Locked lock(mutex_);
    return std::exchange(files_[digest], seen.file) != seen.file;
  }
  bool has(const Digest& digest, const OpenBlob& found) const {
    const Locked lock(mutex_);
    const auto known = files_.find(digest);
    return known != files_.end() && known->second == found.file;
  }

 private:
  mutable Mutex mutex_;
  std::map<Digest, FileId> files_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
