// The first half of exec: until it is this process' turn.
#include "cli/exec_options.h"
#include "cli/wait_line.h"

namespace turnstile::cli {
namespace {

LockRequest request_of(const Context& context, const ExecOptions& options) {
  LockRequest request;
  request.operation = options.lane.type;
  request.resource = options.lane.resource;
  if (!options.scope.empty()) request.scope = options.scope;
  request.lease = options.lease_or_default(context.servers.size() > 1);
  // A bond lets the server hand over within its grace when we are killed. But if a network cuts it and lets
  // no new one through, it hands over while our command still believes in its lease: so only who asks gets
  // one.
  request.monitor = options.bond;
  request.info = options.info;
  return request;
}

// A server that does not answer is given a second more than the wait, so that a short wait does not take a
// busy server for one that is not there.
LockClient::Clock::time_point answer_by(LockClient::Clock::time_point deadline) {
  constexpr std::chrono::seconds kMore{1};
  return deadline == LockClient::Clock::time_point::max() ? deadline : deadline + kMore;
}

// Without a person who looks on, one report is enough, and the wait can be one long poll after the other.
Expected<LockResult> wait_quietly(LockClient& client, LockRequest request,
                                  LockClient::Clock::time_point deadline, const std::stop_token& stop,
                                  WaitLine& line, bool& waited) {
  request.stay_when_busy = true;
  Expected<LockResult> first = client.try_lock(request, answer_by(deadline), stop);
  if (!first || !first->queued()) return first;
  waited = true;
  line.update(first->waiting.value_or(WaitingStatus{}));
  request.request_id = first->request_id;
  return client.lock(request, deadline, stop);
}

std::string outcome_of(const Expected<LockResult>& result) {
  if (!result) return std::string(to_string(result.error().code));
  return result->skipped() ? "skipped" : "acquired";
}

}  // namespace

ExecWait wait_for_turn(const Context& context, const ExecOptions& options, LockClient& client,
                       const Signals& signals) {
  const StopOnSignal stop(signals);
  WaitLine line(context.output, options.lane_text(), options.quiet);
  LockRequest request = request_of(context, options);
  const auto deadline =
      options.wait ? LockClient::Clock::now() + *options.wait : LockClient::Clock::time_point::max();
  ExecWait wait;
  if (options.wait && options.wait->count() == 0) {
    wait.result = client.try_lock(request, answer_by(deadline), stop.token());
  } else if (line.live()) {
    // With a deadline the library is patient with a server that is not there; people want to know at once.
    if (const auto version = client.version(answer_by(deadline), stop.token()); !version) {
      return {.result = std::unexpected(version.error()), .signal = stop.signal()};
    }
    request.on_waiting = [&](const WaitingStatus& status) {
      wait.waited = true;
      line.update(status);
    };
    wait.result = client.lock(request, deadline, stop.token());
  } else {
    wait.result = wait_quietly(client, request, deadline, stop.token(), line, wait.waited);
  }
  wait.signal = stop.signal();
  line.end(outcome_of(wait.result));
  return wait;
}

}  // namespace turnstile::cli
