// One picture of `top`, as text. Pure: what is seen goes in, lines come out.
#pragma once

#include <string>
#include <vector>

#include "cli/format.h"
#include "cli/metrics.h"
#include "turnstile/status.h"

namespace turnstile::cli {

struct TopSight {
  ServerSight server;
  std::vector<LaneStatus> lanes;  // held or waited for; not all of them when `cut`
  bool cut = false;
  WallTime now{};
};

struct TopSize {
  size_t width = 80, height = 24;
};

// `before`: the picture before this one, for rates; nullptr: there was none.
std::string top_frame(const TopSight& sight, const TopSight* before, TopSize size);

}  // namespace turnstile::cli
