#include "service/gate.h"

#include <algorithm>

namespace turnstile {

void Gate::attach(EventLog& log, Router& router, uint64_t last_event) {
  log_ = &log;
  router_ = &router;
  last_event_ = last_event;
  const Locked lock(mutex_);
  last_id_ = log.last_id();
}

uint64_t Gate::commit(Effects& effects) {
  const Locked lock(mutex_);
  last_id_ += effects.events.size();
  // A batch without events says nothing of them: who knows the last one of an earlier life has missed none.
  const uint64_t last_event = effects.events.empty() ? 0 : last_id_;
  if (last_event != 0) last_event_.store(last_event, std::memory_order_release);
  // A step with events and no records (there is none today) would still wait for all before it.
  uint64_t sequence = latest_.load(std::memory_order_relaxed);
  if (keeps_records_ && !effects.records.empty()) {
    sequence = journal_.append(effects.records, effects.at, last_event);
    latest_.store(sequence, std::memory_order_release);
    if (sample_ == 0) {
      sample_ = sequence;
      sample_start_ = std::chrono::steady_clock::now();
    }
  }
  effects.step = uint64_t(log_->append(effects.events, planted(Plant::event_before_sync) ? 0 : sequence));
  return sequence;
}

// A loop is told only when one of its answers waits, and once, however many batches come before it looks. It
// has said what it waits for before it looked at durable() for the last time, so one of the two sees the
// other.
bool Gate::may_leave(unsigned loop, uint64_t sequence) {
  if (is_durable(sequence)) return !is_over();
  std::atomic<uint64_t>& awaited = loops_[loop]->awaited;
  awaited.store(std::max(awaited.load(), sequence));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return is_durable(sequence) && !is_over();
}

void Gate::answered(std::span<const StepId> steps) {
  if (!steps.empty()) router_->answered(steps);
}

void Gate::durable(uint64_t sequence) {
  if (closed_.load()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const std::shared_ptr<LoopLink>& link : loops_) {
    if (planted(Plant::gate_of_one_loop) && link != loops_.front()) continue;
    uint64_t awaited = link->awaited.load();
    if (awaited == 0) continue;
    if (awaited <= sequence) link->awaited.compare_exchange_strong(awaited, 0);
    if (link->told.exchange(true)) continue;
    post(link, [this, &told = link->told](LoopPort& port) {
      told.exchange(false);  // before durable() is read: what comes later posts again
      port.open_gate(journal_.durable());
    });
  }
  take_sample(sequence);
  router_->set_durable(sequence);
}

void Gate::take_sample(uint64_t sequence) {
  double seconds = -1;
  {
    const Locked lock(mutex_);
    if (sample_ != 0 && sample_ <= sequence) {
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - sample_start_).count();
      sample_ = 0;
    }
  }
  if (seconds >= 0) on_commit_time_(seconds);
}

}  // namespace turnstile
