#include "server/commit_pipeline.h"

namespace turnstile {

uint64_t CommitPipeline::commit(Effects& effects) {
  const Locked lock(mutex_);
  // A step with events and no records (there is none today) would still wait for all before it.
  uint64_t sequence = latest_.load(std::memory_order_relaxed);
  if (journal_.keeps_records() && !effects.records.empty()) {
    sequence = journal_.append(effects.records, effects.at);
    latest_.store(sequence, std::memory_order_release);
    if (sample_ == 0) {
      sample_ = sequence;
      sample_start_ = std::chrono::steady_clock::now();
    }
  }
  effects.step = uint64_t(log_->append(effects.events, sequence));
  return sequence;
}

void CommitPipeline::durable(uint64_t sequence) {
  double seconds = -1;
  {
    const Locked lock(mutex_);
    if (sample_ != 0 && sample_ <= sequence) {
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - sample_start_).count();
      sample_ = 0;
    }
  }
  if (seconds >= 0) on_commit_time_(seconds);
  router_->set_durable(sequence);
}

}  // namespace turnstile
