// Plays a plan: servers, their clients and their weather, and then judges what was seen.
#pragma once

#include <string>
#include <vector>

#include "plan.h"

namespace turnstile::sim {

struct Outcome {
  std::vector<std::string> violations;  // empty: all is well
  uint64_t hash = 0;                    // of everything that was seen
  std::string trace;                    // if asked for
  Rare rare;
  uint64_t calls = 0, events = 0, crashes = 0;
};

Outcome play(const Plan& plan, bool with_trace = false);
// Which of them play() calls depends on the plan.
Outcome play_single(const Plan& plan, bool with_trace);
Outcome play_replicated(const Plan& plan, bool with_trace);

// The plan without the moves that its violation does not need.
Plan shrink(Plan plan);
// What to print about a violation: the seed, the shrunk plan, what was seen, and how to see it again.
std::string report(const Plan& plan);

}  // namespace turnstile::sim
