// An open subscription: a thread that reads a stream, and opens it again when it ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "client/caller.h"
#include "client/sse_parser.h"
#include "client/threads.h"
#include "turnstile/lock_client.h"

namespace turnstile {

// A stream that is silent for two heartbeats is given up (L7). It goes on behind the last event that was
// handed over. Only an answer that trying again would not mend (4xx, not Turnstile) ends it.
//
// Blocks: its own thread, in the transport. Threads: any may call end(), one at a time.
class Subscription::State {
 public:
  using OnEvent = std::function<void(const Event&)>;
  using OnEnd = std::function<void(const ClientError&)>;

  State(std::shared_ptr<client::Caller> caller, const SubscribeRequest& request, OnEvent on_event,
        OnEnd on_end, const client::StartThread& start_thread);  // throws what that throws
  ~State() { end(); }

  // Until the stream is open for the first time. Error: it has ended before, or `within` has passed.
  Expected<void> await_open(std::chrono::milliseconds within);
  // Waits for the thread, and so for a callback under way, unless it is called by that callback.
  void end();

 private:
  struct Stream;   // what the thread uses; outlives the State when a callback destroys it
  struct Opening;  // what await_open() waits for
  std::stop_source stop_;
  std::shared_ptr<Opening> opening_;
  std::thread thread_;
};

namespace client {
std::string stream_target(const SubscribeRequest& request);
}

}  // namespace turnstile
