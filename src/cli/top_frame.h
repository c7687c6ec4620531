// One picture of `top`, as text. Pure: what is seen goes in, lines come out.
#pragma once

#include <optional>
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

// By what the rows are sorted; the key that chooses it is its first letter.
enum class TopOrder { waiting, age, resource, holder };

// At most size.height lines of at most size.width columns, and no line end behind the last: on a screen that
// would scroll the first one away. `before`: the picture before this one, for rates; nullptr: there was none.
std::string top_frame(const TopSight& sight, const TopSight* before, TopSize size,
                      TopOrder order = TopOrder::waiting);
// The order of a key, if it is one.
std::optional<TopOrder> order_of(char key);

}  // namespace turnstile::cli
