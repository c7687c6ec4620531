// Time as the client knows it, as an interface, so that tests of back-off, leases and deadlines never sleep.
#pragma once

#include <chrono>
#include <stop_token>

#include "turnstile/clock.h"

namespace turnstile::client {

using Steady = LeaseClock;
using Milliseconds = std::chrono::milliseconds;

// `time + duration`, where too late to be represented means never.
inline Steady::time_point later(Steady::time_point time, Steady::duration duration) {
  return duration >= Steady::time_point::max() - time ? Steady::time_point::max() : time + duration;
}

// Threads: every member may be called by any number of threads.
class Timing {
 public:
  virtual ~Timing() = default;
  virtual Steady::time_point now() const;
  // False: `stop` was used meanwhile.
  virtual bool sleep_until(Steady::time_point time, std::stop_token stop) const;
};

}  // namespace turnstile::client
