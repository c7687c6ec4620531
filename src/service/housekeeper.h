// What happens by itself, without a request: things run out, long queues are told that they have ended, and
// the journal gets a snapshot.
#pragma once

#include <condition_variable>
#include <stop_token>
#include <thread>

#include "base/sync.h"

namespace turnstile {

class Service;

// Two threads: one looks every few milliseconds for what is due; the other takes snapshots, which can be
// slow.
//
// Not its job: deciding what being due means; the engine does.
// Threads: two of its own, from start() to stop(), which does not wait for a snapshot to be finished.
class Housekeeper {
 public:
  explicit Housekeeper(Service& service) : service_(service) {}

  void start();
  // What they are in the middle of may still hurry() it.
  void stop();

  // Something is due now. From any thread.
  void hurry() TS_EXCLUDES(mutex_);

 private:
  void expire(const std::stop_token& stop);
  void take_snapshots(const std::stop_token& stop);
  void wait(const std::stop_token& stop, std::chrono::milliseconds time) TS_EXCLUDES(mutex_);

  Service& service_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool hurry_ TS_GUARDED_BY(mutex_) = false;
  std::jthread expirer_, snapshooter_;
};

}  // namespace turnstile
