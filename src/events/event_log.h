// The bounded, resumable log of all events of this server (S28), and the horizon up to which they may be
// seen.
#pragma once

#include <cstdint>
#include <span>

#include "base/sync.h"
#include "engine/effects.h"
#include "events/event_batch.h"
#include "events/event_ring.h"
#include "events/filter.h"
#include "events/open_steps.h"

namespace turnstile {

struct EventLogSettings {
  size_t max_events = 32'768;
  size_t max_bytes = 8 * 1024 * 1024;  // of memory, all included but 8 bytes an event
  // With a durable store events wait for set_durable(), too (S31). Without one only for their answers.
  bool durable_store = false;
  // The last event of the life before this one, if the store knows it: who has seen that one has missed
  // nothing. 0: not known.
  uint64_t last_of_earlier_life = 0;
  // The id of the state with which that life began, if no event followed: who was told it has missed nothing,
  // either. 0: there were events, or it is not known.
  uint64_t beginning_of_earlier_life = 0;
};

// How much one reading may take, so that the log is never locked for long and no backlog is unbounded.
struct ReadLimits {
  size_t events = 1000;
  size_t bytes = 128 * 1024;  // may be exceeded by one event
};

// Remembers the latest events under ids that grow by one.
//
// An event passes three points: appended (it has an id), published (its step and all earlier ones are
// answered and durable; from now on it may be seen), overwritten (the ring was full). A full ring overwrites
// the oldest event even if it is not published yet: whoever waited for it learns that something is lost. Not
// its job: who listens, which is the Router's. Whoever answers a step of a server with streams goes through
// the Router, which routes what became visible.
// Threads: any; one mutex, held for a few copies of memory and never while calling out.
// Invariant: published id <= last id; what read() gives is published.
class EventLog {
 public:
  // `first_id` must be above every id of earlier lives by three at least: the two before it stand for the
  // beginning of this life, one for a reset and one for the state that is told behind it.
  explicit EventLog(uint64_t first_id, EventLogSettings settings = {});

  // Takes over the events of one step; in commit order. The step stays open, and keeps its events and all
  // later ones back, until it is answered. Without events: StepId::none.
  StepId append(std::span<const Event> events, uint64_t sequence) TS_EXCLUDES(mutex_);

  // The answer of this step, if it has one, has been written. In any order, by any thread; none is harmless.
  // True: events have become visible that somebody listens for, and the caller must route them.
  [[nodiscard]] bool answered(std::span<const StepId> steps) TS_EXCLUDES(mutex_);
  // All steps up to this sequence are durable. Returns the same.
  [[nodiscard]] bool set_durable(uint64_t sequence) TS_EXCLUDES(mutex_);

  struct Position {
    uint64_t last = 0;       // the latest event appended
    uint64_t published = 0;  // the latest that may be seen
  };
  Position position() const TS_EXCLUDES(mutex_);
  uint64_t last_id() const { return position().last; }
  size_t open_steps() const TS_EXCLUDES(mutex_);

  // Whether somebody listens. From listen() on, everything published after the returned position is announced
  // by answered() or set_durable() returning true.
  Position listen() TS_EXCLUDES(mutex_);
  void stop_listening() TS_EXCLUDES(mutex_);

  struct Reading {
    uint64_t reached = 0;  // everything up to this id has been looked at
    uint64_t lost = 0;     // events after `after` up to this id are gone, or were of an earlier life; 0: none
    bool complete = false;  // there is nothing more to look at for now
  };
  // Adds to `out` what is published after `after` and matches; no filter: everything matches. Looks at a
  // bounded number of events at a time: call it again after `reached` unless it is complete.
  Reading read(uint64_t after, const Filter* filter, const ReadLimits& limits, EventBatch& out) const
      TS_EXCLUDES(mutex_);

 private:
  bool advance() TS_REQUIRES(mutex_);
  bool is_beginning(uint64_t id) const;

  const uint64_t first_id_;
  const uint64_t last_of_earlier_life_;
  const uint64_t beginning_of_earlier_life_;
  mutable Mutex mutex_;
  EventRing ring_ TS_GUARDED_BY(mutex_);
  OpenSteps steps_ TS_GUARDED_BY(mutex_);
  uint64_t durable_ TS_GUARDED_BY(mutex_);
  uint64_t published_ TS_GUARDED_BY(mutex_);
  uint64_t announced_ TS_GUARDED_BY(mutex_);  // the part of published_ that a caller was told to route
  bool listening_ TS_GUARDED_BY(mutex_) = false;
};

}  // namespace turnstile
