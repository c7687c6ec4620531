// The clock by which leases and deadlines are measured.
#pragma once

#include <chrono>

#include "turnstile/export.h"

namespace turnstile {
inline namespace v1 {

// Steady, and goes on while the machine is suspended (CLOCK_BOOTTIME): a laptop that slept for longer than
// its lease must know so when it wakes up. std::chrono::steady_clock stands still meanwhile.
struct TURNSTILE_API LeaseClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LeaseClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

// A time of day as a server tells it. The epoch, 1970: it did not.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

}  // namespace v1
}  // namespace turnstile
