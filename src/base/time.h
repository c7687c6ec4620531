// Time as the rules know it: a point on the Unix time line that never goes back.
//
// The engine, the journal and the events all use it, so that a time can be written to disk, shown to people
// and compared, without a second kind of clock. Who reads a clock is said in clock.h.
#pragma once

#include <chrono>

namespace turnstile {

using Duration = std::chrono::microseconds;
using Time = std::chrono::sys_time<Duration>;

inline constexpr Time kNever = Time::max();

// `time + duration`, where too late to be represented means never.
constexpr Time later(Time time, Duration duration) {
  return duration >= kNever - time ? kNever : time + duration;
}

constexpr int64_t to_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace turnstile
