#include "replica/replica_threads.h"

namespace turnstile {

void ReplicaThreads::start() {
  turner_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) wait(stop, replica_.turn(), true);
  });
  keeper_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) wait(stop, replica_.keep_lease(), false);
  });
}

void ReplicaThreads::stop_turns() {
  turner_.request_stop();
  if (turner_.joinable()) turner_.join();
}

void ReplicaThreads::stop() {
  stop_turns();
  keeper_.request_stop();
  if (keeper_.joinable()) keeper_.join();
}

void ReplicaThreads::hurry() {
  {
    const Locked lock(mutex_);
    hurried_ = true;
  }
  changed_.notify_all();
}

void ReplicaThreads::wait(const std::stop_token& stop, Duration time, bool may_hurry) TS_NO_ANALYSIS {
  std::unique_lock lock(mutex_.native());
  changed_.wait_for(lock, stop, time, [&]() TS_NO_ANALYSIS { return may_hurry && hurried_; });
  if (may_hurry) hurried_ = false;
}

}  // namespace turnstile
