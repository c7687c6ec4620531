// A lock as a scope: take it, work, and release it with the result of the work.
//
//   auto done = turnstile::with_lock(client, {.operation = "once", .resource = "nightly"},
//   [](turnstile::Hold&) {
//     return turnstile::WorkResult::succeeded(make_report());
//   });
#pragma once

#include <functional>
#include <stop_token>

#include "turnstile/export.h"
#include "turnstile/lock_client.h"

namespace turnstile {
inline namespace v1 {

struct WorkDone {
  bool here = false;    // by the function, just now; else another node has done it
  SkippedWork by{};     // else: who, when, and with which result
  Released released{};  // here: `confirmed` says whether it is known to count
};

// Waits for its turn as lock() does, and calls `work` if this caller gets the lock. A failure of `work` is
// reported to the server, so that the next waiter takes over, and returned as the error `failed`. An
// exception of `work` counts as a failure with its text; it does not leave this call. For work that also
// counts references: run_once.h.
[[nodiscard]] TURNSTILE_API Expected<WorkDone> with_lock(
    LockClient& client, const LockRequest& request, const std::function<WorkResult(Hold&)>& work,
    LockClient::Clock::time_point deadline = LockClient::Clock::time_point::max(), std::stop_token stop = {});

}  // namespace v1
}  // namespace turnstile
