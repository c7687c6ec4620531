#include "client/timing.h"

#include <time.h>

#include <condition_variable>
#include <mutex>

namespace turnstile {

inline namespace v1 {
LeaseClock::time_point LeaseClock::now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}
}  // namespace v1

namespace client {

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

}  // namespace client
}  // namespace turnstile
