// The loads of `bench`, each a loop of one worker.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "turnstile/lock_client.h"

namespace turnstile::cli {

struct BenchResult {
  uint64_t count = 0;               // of what the mode counts
  std::vector<float> latencies_us;  // of each step
  std::string error;                // that ended it early
};

// What all workers of a run share.
struct BenchRun {
  ClientSettings settings;
  std::string resource;  // of this run alone
  int workers = 1;
  LockClient::Clock::time_point until{};

  bool over() const { return LockClient::Clock::now() >= until; }
};

struct BenchMode {
  const char* name;
  const char* counts;  // what is counted, for people
  BenchResult (*work)(const BenchRun& run, int worker);
};

// pair, handover, fanout, batch
const std::vector<BenchMode>& bench_modes();

}  // namespace turnstile::cli
