// What a journal's records come to, before anybody is served by it. A life that begins takes it over; a
// standby builds it while another server leads, so that little is left to do when it must lead itself.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/engine.h"

namespace turnstile {

// Not its job: where records come from, and what a life does with them. Threads: one at a time.
// Time: that of the steps which it was given; it reads no clock.
class LoadedState {
 public:
  explicit LoadedState(const EngineSettings& settings);

  void load(const Record& record);
  // Every step up to this time has been loaded, and a step is not half loaded now.
  void passed(Time latest);

  uint64_t last_event() const { return last_event_; }
  uint64_t last_life() const { return last_life_; }
  std::unique_ptr<Engine> take_engine() { return std::move(engine_); }
  size_t resource_count() const { return engine_->resource_count(); }

 private:
  std::unique_ptr<Engine> engine_;
  uint64_t last_event_ = 0, last_life_ = 0;  // the marks of all lives before
  uint64_t untidy_ = 0;                      // records since what has run out was forgotten
};

}  // namespace turnstile
