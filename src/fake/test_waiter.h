// For tests: a lock() that waits on a thread of its own.
#pragma once

#include <chrono>
#include <future>

#include "turnstile/fake_server.h"

namespace turnstile {

using namespace std::chrono_literals;

// Short pauses between tries, so that a test of a server that is gone is soon over.
inline ClientSettings impatient() {
  ClientSettings settings;
  settings.max_retries = 1;
  settings.retry_interval = 1ms;
  return settings;
}

inline LockRequest pull(const std::string& resource) {
  LockRequest request;
  request.operation = operations::kPull;
  request.resource = resource;
  return request;
}

// Everything from the beginning on, however late the stream is opened.
inline SubscribeRequest all_events() {
  SubscribeRequest request;
  request.after = "999";  // the fake's first event is 1000
  return request;
}

// Returns when the server has put it into the queue. `client` must outlive the future.
inline std::future<Expected<LockResult>> wait_in_queue(LockClient& client, LockRequest request,
                                                       std::stop_token stop = {}) {
  auto queued = std::make_shared<std::promise<void>>();
  request.on_waiting = [queued, told = false](const WaitingStatus&) mutable {
    if (!std::exchange(told, true)) queued->set_value();
  };
  auto result = std::async(std::launch::async, [&client, request, stop] {
    return client.lock(request, LockClient::Clock::time_point::max(), stop);
  });
  queued->get_future().wait();
  return result;
}

}  // namespace turnstile
