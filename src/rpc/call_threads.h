// Threads for calls that may wait: one each, kept for a while for the next call.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>

#include "base/sync.h"

namespace turnstile::rpc {

// Threads: any may call.
class CallThreads {
 public:
  explicit CallThreads(size_t limit) : limit_(limit) {}
  ~CallThreads() { wait_for_all(); }

  // False: all are busy, and there may not be more.
  [[nodiscard]] bool run(std::function<void()> work);
  // Whether any of them is at work.
  bool are_busy() TS_EXCLUDES(mutex_) {
    const Locked lock(mutex_);
    return threads_ > idle_;
  }
  // Takes no more work, and returns when what there is has been done.
  void wait_for_all();

 private:
  void serve();

  const size_t limit_;
  Mutex mutex_;
  std::condition_variable_any for_thread_, for_end_;
  std::deque<std::function<void()>> work_ TS_GUARDED_BY(mutex_);
  size_t threads_ TS_GUARDED_BY(mutex_) = 0;
  size_t idle_ TS_GUARDED_BY(mutex_) = 0;
  bool ending_ TS_GUARDED_BY(mutex_) = false;
};

}  // namespace turnstile::rpc
