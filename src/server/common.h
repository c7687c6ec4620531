// What the loops of a process have in common, whichever life of the state they serve.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "base/sync.h"
#include "server/access_state.h"
#include "server/settings.h"
#include "service/metrics.h"

namespace turnstile {

class Forwarder;
class Service;

// Threads: on_metrics and version are set before the first loop begins; everything else by any.
class Common {
 public:
  explicit Common(Settings settings)
      : settings_(std::move(settings)), metrics_(settings_.engine.operations) {}

  const Settings& settings() const { return settings_; }
  Metrics& metrics() { return metrics_; }
  AccessState& access() { return access_; }

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

  // Several servers share the store: one leads, and the others say where.
  struct Standing {
    bool replicated = false;
    bool in_step = false;  // a standby that could take over at once
    std::string leader;    // its URL; empty: there is none
    int64_t term = 0;      // the last one that was heard of
  };
  Standing standing() const TS_EXCLUDES(mutex_) {
    const Locked lock(mutex_);
    return standing_;
  }
  void set_standing(Standing now) TS_EXCLUDES(mutex_) {
    const Locked lock(mutex_);
    standing_ = std::move(now);
  }

  // What GET /servers says, and who takes a request to the leader; set as those below are.
  std::function<std::string()> on_servers;
  Forwarder* forwarder = nullptr;
  // What GET /metrics and /version say; the owner of all loops knows.
  std::function<std::string(Service*)> on_metrics;
  std::string version;
  std::string client_version;  // what a client is told: nothing of the machine

 private:
  const Settings settings_;
  Metrics metrics_;
  AccessState access_;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> streams_{0};
  mutable Mutex mutex_;
  Standing standing_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
