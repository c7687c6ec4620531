// The threads of a Replica: all that it leaves to others.
#pragma once

#include <condition_variable>
#include <thread>

#include "base/sync.h"
#include "replica/replica.h"

namespace turnstile {

// Threads: two of its own, from start() to stop(): one calls turn(), one keep_lease(), which must not wait
// for a long take-over.
class ReplicaThreads {
 public:
  explicit ReplicaThreads(Replica& replica) : replica_(replica) {
    replica_.on_hurry = [this] { hurry(); };
  }
  ~ReplicaThreads() { stop(); }

  void start();
  // Not from a turn. Afterwards turn() is the caller's.
  void stop_turns();
  void stop();
  void hurry() TS_EXCLUDES(mutex_);

 private:
  void wait(const std::stop_token& stop, Duration time, bool may_hurry) TS_EXCLUDES(mutex_);

  Replica& replica_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool hurried_ TS_GUARDED_BY(mutex_) = false;
  std::jthread turner_, keeper_;
};

}  // namespace turnstile
