// The test program's own fsync() and fdatasync(): they count, and fail when told to.
//
// The linker prefers a program's own functions to those of the C library, also for what SQLite calls. So the
// real code is tested, without an interface in it that only tests would need.
#pragma once

#include <atomic>
#include <cerrno>
#include <string>

namespace turnstile::testing {

struct Syncs {
  std::atomic<int> calls{0};
  std::atomic<int> until_failure{-1};  // this many succeed, then one fails; negative: none
  std::atomic<int> error{EIO};
  std::string of;  // set: only those of a path that has this in it are counted down
};
Syncs& syncs();

// Lets the n-th sync from now fail, once, as a disk does. `of`: only of paths that have this in them; no
// other thread may sync meanwhile.
class FailingSync {
 public:
  explicit FailingSync(int nth, std::string of = {}, int error = EIO) {
    syncs().of = std::move(of);
    syncs().error = error;
    syncs().until_failure = nth - 1;
  }
  ~FailingSync() {
    syncs().until_failure = -1;
    syncs().of.clear();
  }
  bool has_failed() const { return syncs().until_failure < 0; }
};

}  // namespace turnstile::testing
