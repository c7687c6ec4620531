// A thread of a simulated process: code that blocks, on a fiber, under virtual time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fiber.h"
#include "schedule.h"

namespace turnstile::sim {

class Strand;

// The process: what stops and ends all its strands.
struct StrandHost {
  Schedule& schedule;
  Time paused_until{};
  bool dead = false;  // whatever blocks returns at once, so that the strands come to their end
  std::vector<std::unique_ptr<Strand>> strands;

  explicit StrandHost(Schedule& of);  // below: it can end strands, and so must know what they are
  void start(std::function<void()> body);
  void die();
  bool finished() const;
};

// Threads: one. Must be finished before it is destroyed.
class Strand {
 public:
  Strand(StrandHost& host, std::function<void()> body);

  // The one that runs; none: what runs is no strand's, and must not block.
  static Strand* current();

  // From inside: at least so long; longer while the process is paused.
  void sleep(Duration time);
  // ... or until wake().
  void idle(Duration time);
  // From outside. `whatever`: also what cannot be woken.
  void wake(bool whatever = false);
  bool finished() const { return fiber_.finished(); }

 private:
  void go_on(uint64_t sleep);

  StrandHost& host_;
  Fiber fiber_;
  uint64_t sleeps_ = 0;  // counts: only the latest is in force
  bool asleep_ = false, idle_ = false;
};

inline StrandHost::StrandHost(Schedule& of) : schedule(of) {}

}  // namespace turnstile::sim
