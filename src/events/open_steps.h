// Which steps still keep their events back. The publication horizon of the event log (S30, S31) is decided
// here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace turnstile {

// A step of the engine that had events, in the order of the commits. `none`: a step without events.
enum class StepId : uint64_t { none = 0 };

// The steps whose events may not be seen yet, oldest first. A step is in the way of all later ones until its
// answer has been written (close) and its sequence is durable, because events leave in commit order.
//
// Threads: none of its own; guarded by the log. Time of each call: constant, on average.
// Invariant: steps are contiguous; last events and sequences do not fall from one step to the next.
class OpenSteps {
 public:
  // `last_event`: the id of the step's last event.
  StepId open(uint64_t last_event, uint64_t sequence);

  // In any order; twice is harmless, and so is a step that was dropped.
  void close(StepId step);

  // Takes the steps off the front that are in nobody's way any more. Returns the last event of the last of
  // them; 0 when the horizon does not move.
  uint64_t advance(uint64_t durable);

  // Takes off steps of which every event has been overwritten (is before `first_event`): nothing is left to
  // keep back, and so there are never more steps than events in the ring, even if some are never closed.
  uint64_t drop_before(uint64_t first_event);

  size_t size() const { return steps_.size(); }

 private:
  struct Step {
    uint64_t last_event;
    uint64_t sequence;
    bool closed;
  };

  uint64_t pop();

  std::deque<Step> steps_;
  uint64_t first_ = 1;  // the number of steps_.front()
};

}  // namespace turnstile
