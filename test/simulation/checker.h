// Judges a history by what its clients saw: whether any order of the server's steps could explain it.
//
// Nothing here knows what the server did; a call happened at some point between the moments at which it was
// sent and answered, and one without an answer happened then, later, or never. From that follows for each
// grant when it ended at the earliest, and what must hold until then. docs/testing.md has the list.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/settings.h"
#include "history.h"

namespace turnstile::sim {

// While the machine was paused or down, things may have run out in the meantime.
struct Disturbance {
  Time from{}, to{};
};

struct Judged {
  const History& history;
  const EngineSettings& settings;
  const std::vector<Disturbance>& disturbances;
  Time start{};
  bool slow_disk = false;   // at some time: then it is not known when something happened that was told late
  Time clock_set = kNever;  // ahead: from then on what ends at a point in time may end early
  bool clock_back = false;  // at some time: then a restart may have made it end late
  std::vector<Time>
      take_overs{};       // by another server, to which no bond is open: who does not hear of it loses his
  bool restored = false;  // the store, from a backup: what was told since then is not so any more
};

// One line for each violation; empty: none.
std::vector<std::string> judge(const Judged& what);

// The tokens of grants that were told, by an answer or an event, and cannot have ended by now: after a start
// the server must know of each (S31).
std::set<uint64_t> must_be_held(const Judged& what, Time now);

}  // namespace turnstile::sim
