// One life of the state: engine, journal, events, clock, and what happens in it by itself.
//
// Made when this process begins to serve, dropped as a whole when it must not go on. The process, its
// listeners and connections live longer: they are behind LoopPorts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>

#include "base/clock.h"
#include "engine/engine.h"
#include "events/event_log.h"
#include "events/router.h"
#include "journal/journal.h"
#include "service/gate.h"
#include "service/loaded_state.h"
#include "service/loop_port.h"
#include "service/metrics.h"

namespace turnstile {

class Housekeeper;

// Threads: begin(), attach(), start(), detach() and the end by one; everything else by any.
// Invariant: a Service that has failed lets nothing leave any more (Gate), and never recovers.
class Service {
 public:
  // Called once, on the journal's thread, when the outcome of a write is unknown (S32). By then nothing
  // leaves any more; what follows from it is for the owner to decide.
  using OnFailed = std::function<void(const Error& error)>;

  // Loads what the journal has. The error is one line for people. `followed`: what of it has been loaded
  // already; the journal has the rest.
  static Result<std::unique_ptr<Service>> begin(const EngineSettings& settings,
                                                std::unique_ptr<Journal> journal, unsigned loops,
                                                Metrics& metrics, OnFailed on_failed,
                                                const TimeSource& time = machine_time(),
                                                std::unique_ptr<LoadedState> followed = nullptr);
  ~Service();

  // The loop with this index is there now; for each before its first request.
  void attach(unsigned loop, LoopPort& port) { links_[loop]->port = &port; }
  // From now on things run out by themselves. After the last attach().
  void start();
  // Writes what is pending and nothing more: another server may lead. Nothing happens by itself any more.
  void close();
  // Once each loop has run one more task, none of this Service's is left that would do anything.
  void detach();

  // What was found in the journal.
  struct Loaded {
    Recovered journal;
    Engine::Loaded engine;
    std::chrono::milliseconds took{};
  };
  const Loaded& loaded() const { return loaded_; }
  Engine& engine() { return *engine_; }
  Router& router() { return *router_; }
  Gate& gate() { return *gate_; }
  Journal& journal() { return *journal_; }
  const EventLog& events() const { return *event_log_; }
  Time now() const { return clock_->now(); }
  // No two lives have the same number, of whatever store; who has told this server something can see whether
  // it may have forgotten it since.
  uint64_t life() const { return first_event_; }
  Time began() const { return began_; }

  // Passes on what a step has caused besides its own answer: the answers of long polls to their loops,
  // measures to the metrics. `from`: the loop that runs this, whose own polls need no letter box; nullptr:
  // another thread.
  void distribute(Effects& effects, LoopPort* from);
  // An answer to a long poll that is no Wake is on its way, too.
  void begin_poll_answer() { under_way_.fetch_add(1, std::memory_order_relaxed); }
  // One of those answers is with the kernel, or will never be.
  void answered_poll() { under_way_.fetch_sub(1, std::memory_order_relaxed); }
  // So many of them are under way that no more should be made just now.
  bool is_crowded() const { return under_way_.load(std::memory_order_relaxed) > kMostUnderWay; }
  // Ends what has run out and tells those whose waits have ended, as far as one turn should. True: there may
  // be more.
  bool expire_some(Effects& effects);
  // Lets loops look after what they send by themselves, and the history go on.
  void tick();
  // Lets the journal write all facts anew, if that pays.
  void take_snapshot(const std::stop_token& stop);

 private:
  static constexpr int64_t kMostUnderWay = 2000;

  Service(std::unique_ptr<Journal> journal, unsigned loops, Metrics& metrics);
  Result<void> load(LoadedState& state, OnFailed on_failed, const TimeSource& time);
  void make_events(uint64_t first_id, uint64_t last_of_earlier_life, uint64_t beginning_of_earlier_life);
  Record life_mark() const;
  void deliver(const std::shared_ptr<LoopLink>& link, PollAnswer answer, LoopPort* from);

  Metrics& metrics_;
  LoopLinks links_;  // outlives all that posts
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<EventLog> event_log_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Housekeeper> housekeeper_;
  std::atomic<int64_t> under_way_{0};  // answers of long polls, from the step to the kernel
  uint64_t first_event_ = 0;           // the id that this life's events begin with
  Time began_{};
  Loaded loaded_;
};

}  // namespace turnstile
