// What the server counts, for Prometheus (docs/metrics.md). Labels are operations, never resources.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/summary_json.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "service/history.h"

namespace turnstile {

// Threads: any; every value is atomic or has a mutex of the library's.
class Metrics {
 public:
  // One set of series for each configured operation, and one, `other`, for all names of the users' own: a
  // label that any caller can invent would grow without limit. A configured operation of that name is counted
  // with them.
  explicit Metrics(const std::vector<OperationRules>& operations);

  void observe(std::span<const Measure> measures);
  void observe_handover(double seconds) { handover_seconds_->Observe(seconds); }
  void observe_commit(double seconds) { commit_seconds_->Observe(seconds); }
  void count_request(unsigned status);
  // A new life begins: what was held and waited in the last one is not known any more ...
  void forget_lanes();
  // ... and what was loaded is held and waits already.
  void add_loaded(std::string_view operation, bool held, size_t waiters);

  std::string text() const;

  // For GET /summary: each operation as it is now, but for what is kept, which the engine knows. `other` is
  // the last.
  std::vector<OperationSums> sums() const;
  // All operations together.
  Totals totals() const;
  History& history() { return history_; }

 private:
  struct PerOperation {
    std::string name;
    prometheus::Gauge* held;
    prometheus::Gauge* waiters;
    prometheus::Counter* grants;
    prometheus::Counter* skips;
    prometheus::Counter* refusals;
    prometheus::Histogram* wait_seconds;
    prometheus::Histogram* hold_seconds;
  };
  PerOperation& of(std::string_view operation);

  std::shared_ptr<prometheus::Registry> registry_;
  std::vector<PerOperation> operations_;  // the last one is `other`
  prometheus::Histogram* handover_seconds_;
  prometheus::Histogram* commit_seconds_;
  std::vector<std::pair<unsigned, prometheus::Counter*>> requests_;  // by class of status
  History history_;
};

}  // namespace turnstile
