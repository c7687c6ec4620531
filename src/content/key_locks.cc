// See key_locks.h.
#include "content/key_locks.h"

#include <fmt/format.h>

#include "content/pause.h"

namespace turnstile::content {

Outcome<KeyLocks::Held> KeyLocks::take(const std::string& key, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + (kSimulated ? std::chrono::milliseconds(0) : patience);
  const Locked lock(mutex_);
  while (taken_.contains(key))
    if (freed_.wait_until(mutex_, end) == std::cv_status::timeout && taken_.contains(key))
      return fail(ErrorClass::unavailable, fmt::format("'{}' is in use by another call", key));
  taken_.insert(key);
  return Held(*this, key);
}

void KeyLocks::free(const std::string& key) {
  {
    const Locked lock(mutex_);
    taken_.erase(key);
  }
  freed_.notify_all();
}

}  // namespace turnstile::content
