// The last minutes as a row of numbers, for the charts of the status page (S58).
//
// Apart from the metrics, which only know totals: who looks once wants to see what has been, without a
// Prometheus beside the server.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/sync.h"
#include "base/time.h"

namespace turnstile {

// What has been counted since the process began, and what is there now.
struct Totals {
  uint64_t grants = 0, skips = 0, refusals = 0;
  uint64_t held = 0, waiting = 0;
  // Of hand-overs and of commits: how many were measured, and the sum of their seconds.
  uint64_t handovers = 0, commits = 0;
  double handover_seconds = 0, commit_seconds = 0;
};

// What happened in one stretch of time, and what was there at its end.
struct HistoryPoint {
  uint64_t grants = 0, skips = 0, refusals = 0;
  uint64_t held = 0, waiting = 0;
  std::optional<double> handover_ms, commit_ms;  // on average; nothing: there was none
};

// The differences of totals that somebody brings a few times a second, so that counting costs those who lock
// nothing. At most kPoints are kept.
//
// Time: comes with each call. A stretch in which nobody brought anything counts as one in which nothing
// happened. Threads: any.
class History {
 public:
  static constexpr Duration kStep = std::chrono::seconds(2);
  static constexpr size_t kPoints = 150;

  void sample(const Totals& totals, Time now) TS_EXCLUDES(mutex_);

  struct Row {
    Time until{};                      // the end of the last point
    std::vector<HistoryPoint> points;  // the oldest first, each a kStep long
  };
  Row read() const TS_EXCLUDES(mutex_);

 private:
  void add(const HistoryPoint& point) TS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::array<HistoryPoint, kPoints> ring_ TS_GUARDED_BY(mutex_);
  size_t count_ TS_GUARDED_BY(mutex_) = 0;  // of all points ever
  bool begun_ TS_GUARDED_BY(mutex_) = false;
  Time until_ TS_GUARDED_BY(mutex_){};  // the end of the last point
  Totals last_ TS_GUARDED_BY(mutex_);   // at that time
};

}  // namespace turnstile
