// The thread that keeps leases alive.
#pragma once

#include <memory>
#include <thread>

#include "client/caller.h"
#include "client/threads.h"
#include "turnstile/hold.h"

namespace turnstile::client {

// Renews each hold after a third of its lease, several that are due in one round trip, and tells their owners
// when a renewal stays out.
//
// Its thread begins with the first hold that needs it, and ends with the Keeper. A renewal in flight never
// makes it late for the next change of a hold: each try is cut off by then, and tried again. Nothing else
// cuts one off but a new hold with a shorter lease, and a loss that its owner has to hear of. Blocks: its own
// thread, in the transport and on a condition variable. Threads: any may call.
class Keeper {
 public:
  // with_thread false: nothing happens but by step(), for tests.
  explicit Keeper(std::shared_ptr<Caller> caller, bool with_thread = true,
                  StartThread start_thread = start_real_thread);
  ~Keeper();

  // False: there is no thread to keep it, and none can be made.
  bool add(const std::shared_ptr<Hold::State>& state);
  void remove(const Hold::State* state);
  // Something of a hold's that was added is due at `time`, perhaps earlier than was known. A renewal in
  // flight is not disturbed by it.
  void wake_by(Steady::time_point time);
  // There is a change to tell that cannot wait for a renewal in flight.
  void tell_now(Steady::time_point now);
  // Does what is due, and says when the next thing will be.
  Steady::time_point step();

 private:
  class Shared;
  bool start();

  const std::shared_ptr<Shared> shared_;
  const bool with_thread_;
  const StartThread start_thread_;
  Mutex mutex_;
  std::thread thread_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::client
