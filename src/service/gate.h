// What may leave the server, and when: the one place that decides.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <span>

#include "base/plant.h"
#include "base/sync.h"
#include "engine/commit_sink.h"
#include "events/router.h"
#include "journal/journal.h"
#include "service/loop_port.h"

namespace turnstile {

// A step passes it three times. Taken: its records go to the journal and its events to the log, in one order,
// and it gets a sequence number. Durable: the journal has come that far, and the answer may leave (S31).
// Answered: the answer is with the kernel, and the step's events may be seen (S30). Reads and renewals that
// change nothing wait for the latest sequence there was, because they tell of it.
//
// Not its job: keeping the answers that wait. A loop does, asks may_leave(), and is told when to ask again.
// Threads: commit() by any, under a resource's mutex; durable() and close() by the journal's thread; the
// others by any. Time: only to measure how long a commit takes.
// Invariant: nothing that depends on a step passes before it is durable; after close() nothing passes at all,
// and nothing when the time of a leader's term is over.
class Gate : public CommitSink {
 public:
  // `on_commit_time(seconds)`: a sample of how long a step took to become durable.
  Gate(Journal& journal, const LoopLinks& loops, std::function<void(double)> on_commit_time)
      : journal_(journal),
        loops_(loops),
        on_commit_time_(std::move(on_commit_time)),
        keeps_records_(journal.keeps_records()),
        guards_reads_(journal.guards_reads()),
        is_over_(journal.is_over()) {}

  // Once, before the first commit: recovery has to find out where the log begins. `last_event`: the latest of
  // earlier lives.
  void attach(EventLog& log, Router& router, uint64_t last_event);

  uint64_t commit(Effects& effects) override TS_EXCLUDES(mutex_);
  uint64_t latest() const override {
    return guards_reads_ ? journal_.barrier() : latest_.load(std::memory_order_acquire);
  }
  bool wants_records() const override { return keeps_records_; }

  // Whether what depends on this sequence may leave. False: LoopPort::open_gate() of this loop follows, or
  // this life ends.
  bool may_leave(unsigned loop, uint64_t sequence);
  // The answers of these steps are with the kernel, or their readers are gone.
  void answered(std::span<const StepId> steps);
  // Nobody is answered by this step: its events need not wait for that.
  void unanswered(const Effects& effects) { router_->answered(StepId(effects.step)); }

  // The journal's word, on its thread.
  void durable(uint64_t sequence) TS_EXCLUDES(mutex_);
  // The outcome of a write is unknown: nothing may leave any more (S32).
  void close() { closed_.store(true); }
  // The time in which something may leave is over by itself: a leader has slept for longer than its lease
  // (S47).
  bool is_over() const { return is_over_ != nullptr && (*is_over_)() && !planted(Plant::late_answer_counts); }

  // The id of the latest event there was, for the snapshot's mark.
  uint64_t last_event() const { return last_event_.load(std::memory_order_acquire); }

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  bool is_durable(uint64_t sequence) const {
    return (sequence <= journal_.durable() || planted(Plant::answer_before_sync)) && !closed_.load();
  }
  void take_sample(uint64_t sequence) TS_EXCLUDES(mutex_);

  Journal& journal_;
  EventLog* log_ = nullptr;
  Router* router_ = nullptr;
  const LoopLinks& loops_;
  const std::function<void(double)> on_commit_time_;
  const bool keeps_records_, guards_reads_;
  const std::function<bool()>* const is_over_;
  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> latest_{0};
  std::atomic<uint64_t> last_event_{0};
  uint64_t last_id_ TS_GUARDED_BY(mutex_) = 0;  // of the log

  Mutex mutex_;
  uint64_t sample_ TS_GUARDED_BY(mutex_) = 0;  // the sequence whose time is being taken; 0: none
  SteadyTime sample_start_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
