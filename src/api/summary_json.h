// What GET /summary says (S58), as a value and as JSON. A file of its own: the one answer that is about the
// server as a whole, and that no engine gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/effects.h"

namespace turnstile {

struct OperationSums {
  std::string_view operation;
  uint64_t held = 0, waiting = 0, kept = 0;      // now
  uint64_t grants = 0, skips = 0, refusals = 0;  // since the process began
};

// The last minutes, a value for each step of time, the oldest first.
struct HistoryView {
  Duration step{};
  Time until{};
  std::vector<uint64_t> grants, skips, refusals, held, waiting;
  std::vector<std::optional<double>> handover_ms, commit_ms;
};

struct SummaryView {
  Time now{};
  uint64_t life = 0;
  Duration uptime{};
  uint64_t resources = 0;
  std::optional<uint64_t> references;  // nothing: the server keeps none
  std::vector<OperationSums> operations;
  HistoryView history;
  struct Ending {
    uint64_t id = 0;
    Event event;
  };
  std::vector<Ending> endings;  // the newest first
  uint64_t last_event = 0;      // the latest that may be seen
};

void append_summary_json(std::string& out, const SummaryView& summary);

}  // namespace turnstile
