// Runs a random history on the model and on the engine at once and compares everything that can be seen.
#pragma once

#include <optional>
#include <string>

#include "random_commands.h"
#include "rare_states.h"

namespace turnstile::model {

struct Outcome {
  std::string mismatch;  // empty: they agree
  size_t at = 0;         // the command at which they did not
  RareCounts rare{};
  // If asked for: commands and everything the engine said, and its hash.
  std::string trace;
  uint64_t trace_hash = 0;
};

// `echo` writes the trace to stderr as it goes, for an engine that aborts.
Outcome run(const RandomHistory& history, bool with_trace = false, bool echo = false);

// The same history without the commands that its mismatch does not need.
RandomHistory shrink(RandomHistory history);

// What to set in the environment to see it again.
std::string how_to_repeat(const RandomHistory& history);

// What to print about a mismatch: the seed, the shrunk history, its trace.
std::string report(const RandomHistory& history);

}  // namespace turnstile::model
