// The one place that reads a clock.
#pragma once

#include "base/time.h"

namespace turnstile {

// Where a Clock gets its time from: the machine, unless a simulation brings a time of its own.
//
// Threads: every member may be called by any number of them.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual Time wall() const;        // since 1970; an administrator may set it
  virtual Duration steady() const;  // since whenever; only ever grows
  virtual Duration boot() const;    // the same, and goes on while the machine sleeps
};
const TimeSource& machine_time();

// Unix time at construction plus what a steady clock has measured since, so that it never goes back while the
// process lives, whatever an administrator does to the wall clock.
//
// Threads: now() may be called by any number of them.
class Clock {
 public:
  // `not_before`: the latest time known from an earlier life (the journal's), which this clock starts after.
  explicit Clock(Time not_before = Time{}, const TimeSource& source = machine_time());

  Time now() const { return start_ + (source_.steady() - steady_start_); }

 private:
  const TimeSource& source_;
  const Time start_;
  const Duration steady_start_;
};

}  // namespace turnstile
