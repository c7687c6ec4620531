// What happens by itself, without a request: things run out, streams get comments, the journal gets a
// snapshot.
#pragma once

#include <condition_variable>
#include <thread>

#include "base/sync.h"

namespace turnstile {

class App;

// Two threads: one looks every few milliseconds for what has run out; the other takes snapshots, which can be
// slow.
//
// Not its job: deciding what running out means; the engine does.
// Threads: two of its own, from construction to destruction.
class Housekeeper {
 public:
  explicit Housekeeper(App& app);
  ~Housekeeper();

 private:
  void expire_loop();
  void snapshot_loop();
  // False: it is time to end.
  bool wait(std::chrono::milliseconds time) TS_EXCLUDES(mutex_);

  App& app_;
  Mutex mutex_;
  std::condition_variable_any ended_changed_;
  bool ended_ TS_GUARDED_BY(mutex_) = false;
  std::thread expire_thread_, snapshot_thread_;
};

}  // namespace turnstile
