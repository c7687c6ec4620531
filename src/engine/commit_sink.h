// Where the engine's effects go while the resource is still locked, so that two steps on one resource are
// recorded in the order in which they happened.
#pragma once

#include <cstdint>

#include "engine/effects.h"

namespace turnstile {

class CommitSink {
 public:
  virtual ~CommitSink() = default;

  // Takes over the records and events of one step, in order, into memory: no disk or network, it is called
  // under the resource's mutex. Returns the sequence number behind which the step's answer may leave. Its
  // views are valid only during the call. May set effects.step.
  virtual uint64_t commit(Effects& effects) = 0;

  // The sequence number of the latest commit: a read may leave when everything it could have seen is durable.
  virtual uint64_t latest() const = 0;

  // Whether anybody wants records; without a durable store the engine does not make them.
  virtual bool wants_records() const = 0;
};

}  // namespace turnstile
