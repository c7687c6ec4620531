// One at a time for each key, within this plugin: one writer for a ref, one commit or removal for a digest.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/sync.h"
#include "content/content_error.h"

namespace turnstile::content {

// Which keys are taken.
//
// Not its job: other nodes; they write the same ref into ingests of their own. Threads: any; a key may be
// freed by another thread than took it.
class KeyLocks {
 public:
  // Frees the key when it goes. The KeyLocks must outlive it.
  class Held {
   public:
    Held(KeyLocks& locks, std::string key) : locks_(&locks), key_(std::move(key)) {}
    Held(Held&& from) noexcept : locks_(std::exchange(from.locks_, nullptr)), key_(std::move(from.key_)) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (locks_ != nullptr) locks_->free(key_);
    }

   private:
    KeyLocks* locks_;
    std::string key_;
  };

  // containerd's client has often only just closed the stream before, so a moment's patience is worth it.
  static constexpr std::chrono::milliseconds kPatience{1000};

  // Error unavailable when another keeps the key for longer than `patience`.
  Outcome<Held> take(const std::string& key, std::chrono::milliseconds patience = kPatience);

 private:
  void free(const std::string& key);

  Mutex mutex_;
  std::condition_variable_any freed_;
  std::unordered_set<std::string> taken_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
