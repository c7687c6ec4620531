#include "base/clock.h"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace turnstile {

using std::chrono::steady_clock;
using std::chrono::system_clock;

Time TimeSource::wall() const { return std::chrono::time_point_cast<Duration>(system_clock::now()); }

Duration TimeSource::steady() const {
  return std::chrono::duration_cast<Duration>(steady_clock::now().time_since_epoch());
}

Duration TimeSource::boot() const {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::duration_cast<Duration>(std::chrono::seconds(now.tv_sec) +
                                              std::chrono::nanoseconds(now.tv_nsec));
}

const TimeSource& machine_time() {
  static const TimeSource source;
  return source;
}

Clock::Clock(Time not_before, const TimeSource& source)
    : source_(source), start_(std::max(not_before, source.wall())), steady_start_(source.steady()) {}

}  // namespace turnstile
