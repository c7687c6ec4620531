#include "base/clock.h"

#include <algorithm>

namespace turnstile {

Clock::Clock(Time not_before)
    : start_(std::max(not_before, std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()))),
      steady_start_(std::chrono::steady_clock::now()) {}

Time Clock::now() const {
  return start_ + std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - steady_start_);
}

}  // namespace turnstile
