// The test program's own fsync() and fdatasync(): they count, and fail when told to.
//
// The linker prefers a program's own functions to those of the C library, also for what SQLite calls. So the
// real code is tested, without an interface in it that only tests would need.
#pragma once

#include <atomic>

namespace turnstile::testing {

struct Syncs {
  std::atomic<int> calls{0};
  std::atomic<int> until_failure{-1};  // this many succeed, then one fails with EIO; negative: none
};
Syncs& syncs();

// Lets the n-th sync from now fail, once, as a disk does.
class FailingSync {
 public:
  explicit FailingSync(int nth) { syncs().until_failure = nth - 1; }
  ~FailingSync() { syncs().until_failure = -1; }
  bool has_failed() const { return syncs().until_failure < 0; }
};

}  // namespace turnstile::testing
