#include "client/timing.h"

#include <condition_variable>
#include <mutex>

namespace turnstile::client {

Steady::time_point Timing::now() const { return Steady::now(); }

bool Timing::sleep_until(Steady::time_point time, std::stop_token stop) const {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  // max() overflows inside some implementations of wait_until; an hour is woken from and slept again.
  while (!stop.stop_requested() && now() < time) {
    wake.wait_until(lock, stop, std::min(time, now() + std::chrono::hours(1)), [] { return false; });
  }
  return !stop.stop_requested();
}

}  // namespace turnstile::client
