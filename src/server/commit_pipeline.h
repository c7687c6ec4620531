// Where the engine's effects meet the journal and the event log: one order for both.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "base/sync.h"
#include "engine/commit_sink.h"
#include "events/router.h"
#include "journal/journal.h"

namespace turnstile {

// Takes each step's records and events under one mutex, so that events leave in the order of the journal.
//
// Not its job: holding answers back. It gives each step a sequence number; the loops write an answer when the
// journal has come that far (http::Response::release), then say so with written(), and only then events
// follow (S30). Threads: commit() by any, under a resource's mutex. Time: only to measure how long a commit
// takes.
class CommitPipeline : public CommitSink {
 public:
  // `on_commit_time(seconds)`: a sample of how long a step took to become durable.
  CommitPipeline(Journal& journal, std::function<void(double)> on_commit_time)
      : journal_(journal), on_commit_time_(std::move(on_commit_time)) {}

  // Once, before the first commit.
  void attach(EventLog& log, Router& router) {
    log_ = &log;
    router_ = &router;
  }

  uint64_t commit(Effects& effects) override TS_EXCLUDES(mutex_);
  uint64_t latest() const override { return latest_.load(std::memory_order_acquire); }
  bool wants_records() const override { return journal_.keeps_records(); }

  // The journal's word, on its thread: lets events go that waited only for it, and takes the time.
  void durable(uint64_t sequence);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  Journal& journal_;
  const std::function<void(double)> on_commit_time_;
  EventLog* log_ = nullptr;
  Router* router_ = nullptr;
  std::atomic<uint64_t> latest_{0};

  Mutex mutex_;
  uint64_t sample_ TS_GUARDED_BY(mutex_) = 0;  // the sequence whose time is being taken; 0: none
  SteadyTime sample_start_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
