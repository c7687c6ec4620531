// Do something once in the whole cluster, as one call: check, lock, work, count, unlock.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "turnstile/error.h"
#include "turnstile/export.h"
#include "turnstile/lock_client.h"
#include "turnstile/ref_count.h"

namespace turnstile {
inline namespace v1 {

// What the caller's function is told.
struct Work {
  const std::string& operation;
  const std::string& resource;
  std::string node_id;  // who does it: this node
  Hold& hold;           // token, attempt, previous_error, report_progress, believed_until
  std::vector<std::string>
      waiters;  // nodes that wait for the resource: a delete may decide to leave it to them
};

struct RunOnceOptions {
  LockRequest request;  // lease, scope, monitor, info; its operation and resource are run_once's own
  LockClient::Clock::time_point deadline = LockClient::Clock::time_point::max();
  std::stop_token stop;
  RefCountManager* references =
      nullptr;  // set: this side keeps the counts (a server with `references = client`)
};

enum class RunOnceOutcome {
  ran,      // the function ran here and succeeded
  skipped,  // done already, by another node or by the counts
};

// Runs `function` if it falls to this node to do the work. Its failure is reported to the server, so that the
// next in line takes over, and returned as an error (`failed`). References are checked before the lock, to
// save a round trip, and again under it, which is what counts (P7); they are updated before the lock is
// released. An exception of the function's is a failure with its text, and does not leave this call.
TURNSTILE_API Expected<RunOnceOutcome> run_once(LockClient& client, const std::string& operation,
                                                const std::string& resource,
                                                const std::function<WorkResult(Work&)>& function,
                                                const RunOnceOptions& options = {});

}  // namespace v1
}  // namespace turnstile
