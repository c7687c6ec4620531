// The daemon's wiring: the one place that chooses implementations and owns what all loops share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "events/event_log.h"
#include "events/router.h"
#include "http/server.h"
#include "journal/journal.h"
#include "server/commit_pipeline.h"
#include "server/mailbox.h"
#include "server/metrics.h"
#include "server/settings.h"

namespace turnstile {

class LoopHandler;
class Housekeeper;

// Starts and stops everything, and carries answers and events between threads.
//
// Threads: start() and stop() by the main thread; everything else by any.
class App {
 public:
  explicit App(Settings settings);
  ~App();

  // Recovers the journal and begins to serve. The error is one line for stderr.
  Result<void> start();
  std::vector<std::string> addresses() const;
  // SIGTERM: stop accepting, answer what is under way, close streams, flush. Within five seconds.
  void stop();

  const Settings& settings() const { return settings_; }
  Engine& engine() { return *engine_; }
  Router& router() { return *router_; }
  Journal& journal() { return *journal_; }
  Metrics& metrics() { return metrics_; }
  Time now() const { return clock_->now(); }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  std::string metrics_text();
  std::string version_json() const;

  // Everything that a step has caused besides its own answer: wakes to their loops, measures to the metrics.
  // `from`: the loop that runs this, whose own wakes need no letter box; nullptr: another thread.
  void distribute(Effects& effects, LoopHandler* from);

  // The loop has an answer behind this sequence. True: it is durable already.
  bool await_durable(unsigned loop, uint64_t sequence);

  // One more stream, if there may be one.
  bool open_stream();
  void close_stream() { --streams_; }
  // From the housekeeper, a few times a second: lets every loop with streams look after them.
  void tick();

 private:
  friend class LoopHandler;

  Result<std::unique_ptr<Journal>> open_journal() const;
  Result<void> recover();
  void on_durable(uint64_t sequence);
  void deliver_events(unsigned loop, std::vector<Delivery>&& deliveries);

  // What one loop's thread shares with the others.
  struct PerLoop {
    http::Loop* loop = nullptr;
    LoopHandler* handler = nullptr;
    Mailbox mailbox;
    std::atomic<uint64_t> awaited{0};  // its answers wait for this much to be durable
    std::atomic<bool> release_posted{false};
  };

  const Settings settings_;
  Metrics metrics_;
  std::function<void()> log_recovery_;  // said when it serves: a server that cannot start says only why
  std::atomic<bool> stopping_{false};
  std::atomic<bool> serving_{false};  // loops_ are there for other threads to use
  std::atomic<size_t> streams_{0};
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<CommitPipeline> pipeline_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<EventLog> event_log_;
  std::unique_ptr<Router> router_;
  std::vector<std::unique_ptr<PerLoop>> loops_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<Housekeeper> housekeeper_;
};

}  // namespace turnstile
