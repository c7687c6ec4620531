#include "events/open_steps.h"

#include "base/check.h"

namespace turnstile {

StepId OpenSteps::open(uint64_t last_event, uint64_t sequence) {
  TS_CHECK(steps_.empty() || sequence >= steps_.back().sequence, "steps come in commit order");
  steps_.push_back({last_event, sequence, false});
  return StepId(first_ + steps_.size() - 1);
}

void OpenSteps::close(StepId step) {
  const uint64_t number = uint64_t(step);
  if (number < first_) return;
  TS_CHECK(number - first_ < steps_.size(), "only steps that were opened are answered");
  steps_[number - first_].closed = true;
}

uint64_t OpenSteps::advance(uint64_t durable) {
  uint64_t horizon = 0;
  while (!steps_.empty() && steps_.front().closed && steps_.front().sequence <= durable) horizon = pop();
  return horizon;
}

uint64_t OpenSteps::drop_before(uint64_t first_event) {
  uint64_t horizon = 0;
  while (!steps_.empty() && steps_.front().last_event < first_event) horizon = pop();
  return horizon;
}

uint64_t OpenSteps::pop() {
  const uint64_t last_event = steps_.front().last_event;
  steps_.pop_front();
  ++first_;
  return last_event;
}

}  // namespace turnstile
