// The one place that reads a clock.
#pragma once

#include "base/time.h"

namespace turnstile {

// Unix time at construction plus what a steady clock has measured since, so that it never goes back while the
// process lives, whatever an administrator does to the wall clock.
//
// Threads: now() may be called by any number of them.
class Clock {
 public:
  // `not_before`: the latest time known from an earlier life (the journal's), which this clock starts after.
  explicit Clock(Time not_before = Time{});

  Time now() const;

 private:
  Time start_;
  std::chrono::steady_clock::time_point steady_start_;
};

}  // namespace turnstile
