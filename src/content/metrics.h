// What the plugin counts, for Prometheus (docs/metrics.md) and for whoever asks whether it is ready.
//
// Who does something counts it, where it is done: streams in WriteSession, removals in ContentStore, what the
// lock server says in the arbiter. Here are only the names and the numbers.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "base/sync.h"

namespace turnstile::content {

// What only grows. Names and help texts are in metrics.cc, in this order.
enum class Count : uint8_t {
  pulled_blobs,
  pulled_bytes,
  adopted_blobs,
  saved_bytes,
  received_bytes,
  waits,
  queued,
  failed_writes,
  takeovers,
  pulls_without_server,
  uses_ended,
  removed_blobs,
  lost_blobs,
  damaged_blobs,
};
inline constexpr size_t kCounts = size_t(Count::damaged_blobs) + 1;

// Threads: any; every value is atomic or has a mutex.
class Metrics {
 public:
  Metrics();

  void add(Count count, int64_t by = 1) { counters_[size_t(count)]->Increment(double(by)); }
  uint64_t value(Count count) const { return uint64_t(counters_[size_t(count)]->Value()); }

  void write_began() { writes_->Increment(); }
  void write_ended() { writes_->Decrement(); }

  // As the last call to it has shown. Without any the node is alone, and there is no such gauge.
  void set_lock_server(bool answers, std::optional<std::string> why_not_ready) TS_EXCLUDES(mutex_);
  // A sentence, or nothing while nothing is wrong.
  std::optional<std::string> why_not_ready() const TS_EXCLUDES(mutex_);

  // What others know, told when somebody asks for the text.
  void set_gauge(const char* name, const char* help, double value);

  std::string text() const;

 private:
  const std::shared_ptr<prometheus::Registry> registry_;
  std::array<prometheus::Counter*, kCounts> counters_;
  prometheus::Gauge* writes_;
  mutable Mutex mutex_;
  std::optional<std::string> not_ready_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::content
