// What the loops of a process have in common, whichever life of the state they serve.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "server/settings.h"
#include "service/metrics.h"

namespace turnstile {

class Service;

// Threads: on_metrics and version are set before the first loop begins; everything else by any.
class Common {
 public:
  explicit Common(Settings settings)
      : settings_(std::move(settings)), metrics_(settings_.engine.operations) {}

  const Settings& settings() const { return settings_; }
  Metrics& metrics() { return metrics_; }

  // The process has been told to end: no new work is taken.
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  void begin_to_stop() { stopping_ = true; }

  // One more stream, if there may be one.
  bool open_stream() {
    if (streams_.fetch_add(1) < settings_.max_streams) return true;
    --streams_;
    return false;
  }
  void close_stream() { --streams_; }
  size_t streams() const { return streams_.load(); }

  // What GET /metrics and /version say; the owner of all loops knows.
  std::function<std::string(Service*)> on_metrics;
  std::string version;

 private:
  const Settings settings_;
  Metrics metrics_;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> streams_{0};
};

}  // namespace turnstile
