// One history of three nodes that share blobs, under one seed: the plugin's real code from Write streams to
// files, and everything that can go wrong around it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace turnstile::lives {

struct Played {
  std::vector<std::string> violations;
  std::map<std::string, uint64_t> counts;  // what was reached
  uint64_t hash = 0;
  std::string trace;  // if wanted
};

Played play(uint64_t seed, bool wants_trace = false);

}  // namespace turnstile::lives
