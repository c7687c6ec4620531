// Time as containerd's content API wants it: to the nanosecond, because its tests compare with their own
// clock.
#pragma once

#include <compare>
#include <cstdint>
#include <ctime>

namespace turnstile::content {

// Nanoseconds since 1970.
struct Timestamp {
  int64_t ns = 0;

  static Timestamp now() {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return of(time);
  }
  static Timestamp of(const timespec& time) { return {time.tv_sec * kSecond + time.tv_nsec}; }
  timespec to_timespec() const { return {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond}; }

  friend auto operator<=>(const Timestamp&, const Timestamp&) = default;

  static constexpr int64_t kSecond = 1'000'000'000;
};

}  // namespace turnstile::content
