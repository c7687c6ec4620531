// lock, unlock, renew, cancel: one call each, for scripts that keep the token themselves.
#include <fmt/format.h>

#include <cstring>

#include "base/standard_streams.h"
#include "cli/json.h"
#include "cli/operation_hint.h"
#include "cli/program.h"
#include "cli/signals.h"

namespace turnstile::cli {
namespace {

struct LockOptions {
  Lane lane;
  std::optional<Milliseconds> wait, lease;
  std::string scope, request_id, info;
  bool dereference = false;
};

struct UnlockOptions {
  Lane lane;
  uint64_t token = 0;
  std::string request_id, error, result;
  std::optional<Milliseconds> keep;
  bool failed = false, permanent = false;
};

struct RenewOptions {
  Lane lane;
  uint64_t token = 0;
  std::string request_id;
  std::optional<Milliseconds> lease;
};

struct CancelOptions {
  Lane lane;
  std::string request_id;
};

LockRequest request_of(const LockOptions& options) {
  LockRequest request;
  request.operation = options.lane.type;
  request.resource = options.lane.resource;
  request.request_id = options.request_id;
  if (!options.scope.empty()) request.scope = options.scope;
  request.lease = options.lease.value_or(Milliseconds(0));
  request.dereference = options.dereference;
  request.info = options.info;
  return request;
}

int print_skipped(const Context& context, const LockOptions& options, const LockResult& result) {
  if (context.json()) {
    boost::json::object out{{"state", "skipped"}, {"request_id", result.request_id}};
    out["references"] = to_json(result.references);
    for (const auto& field : to_json(result.work)) out.insert(field);
    print_json(out);
  } else {
    const SkippedWork& work = result.work;
    print_error("turnstile: skipped: {} of {} has been done already{}{}\n", options.lane.type,
                options.lane.resource, work.node_id.empty() ? "" : ", by " + one_line(work.node_id),
                work.ago ? fmt::format(", {} ago", show_duration(*work.ago)) : "");
  }
  return kSkipped;
}

// Nobody has the token, so nobody would release it: it would stay for as long as the server lets it. But
// whoever has chosen a request id can come back by that, and may have come back to a hold that is in use.
int give_back(const Context& context, const LockOptions& options, LockResult& result, int fault,
              const std::stop_token& stop) {
  Hold& hold = result.hold;
  const uint64_t token = hold.token();
  std::string message = fmt::format("the token could not be written ({})", std::strerror(fault));
  if (!options.request_id.empty()) {
    hold.detach();
    message +=
        fmt::format("; the lock is held: ask again, or release it, with --request-id {}", options.request_id);
  } else if (const auto released = hold.release(WorkResult::failed(message), stop); released) {
    message += ", so the lock was released";
  } else {
    hold.detach();
    message += fmt::format(
        ", and the lock could not be released ({}): it stays held; turnstile unlock {} {} --token {}",
        released.error().message, options.lane.type, options.lane.resource, token);
  }
  return report(context.output, message, "output", kUnexpected);
}

// The hold outlives this process: it is left to the server, and to whoever reads the token.
int print_acquired(const Context& context, const LockOptions& options, LockResult& result,
                   const std::stop_token& stop) {
  Hold& hold = result.hold;
  if (context.json()) {
    boost::json::object out{{"state", "acquired"}, {"token", hold.token()}};
    out["request_id"] = result.request_id;
    out["attempt"] = hold.attempt();
    if (!hold.previous_error().empty()) out["previous_error"] = hold.previous_error();
    print_json(out);
  } else {
    print_output("{}\n", hold.token());
  }
  if (const int fault = take_output_fault(); fault != 0)
    return give_back(context, options, result, fault, stop);
  hold.detach();
  return kOk;
}

Expected<LockResult> take(LockClient& client, const LockOptions& options, const std::stop_token& stop) {
  const LockRequest request = request_of(options);
  if (!options.wait || options.wait->count() == 0) {
    return client.try_lock(request, LockClient::Clock::time_point::max(), stop);
  }
  const auto deadline = LockClient::Clock::now() + *options.wait;
  // With a deadline the library is patient with a server that is not there; people want to know at once. It
  // is given a second more than the wait, so that a short one does not take a busy server for none.
  const auto version = client.version(deadline + std::chrono::seconds(1), stop);
  if (!version) return std::unexpected(version.error());
  return client.lock(request, deadline, stop);
}

int lock(const Context& context, const LockOptions& options) {
  if (const std::string hint = hint_about(options.lane.type, "gets the lock");
      !hint.empty() && !context.json())
    print_error("turnstile: {}\n", one_line(hint));
  signal(SIGPIPE, SIG_IGN);  // to die of the token would be to leave the hold to nobody
  signal(SIGXFSZ, SIG_IGN);
  const Signals signals({SIGINT, SIGTERM, SIGHUP});
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  const StopOnSignal stop(signals);
  Expected<LockResult> result = take(*client, options, stop.token());
  if (!result && result.error().code == ErrorCode::cancelled && stop.signal() != 0) {
    return report(context.output, "interrupted; the place in the queue is given up", "interrupted",
                  kSignalled + stop.signal());
  }
  if (!result) return context.fail(result.error());
  return result->skipped() ? print_skipped(context, options, *result)
                           : print_acquired(context, options, *result, stop.token());
}

int unlock(const Context& context, const UnlockOptions& options) {
  Expected<LockClient> client = context.client(Context::kManyRetries);
  if (!client) return context.fail(client.error());
  WorkResult work = WorkResult::succeeded(options.result, options.keep);
  if (options.failed) work = {.success = false, .error = options.error, .permanent = options.permanent};
  const Expected<Released> released =
      client->unlock(options.lane.type, options.lane.resource, work, options.token, options.request_id);
  if (!released && released.error().reason == "not_holder" && options.token == 0 &&
      options.request_id.empty()) {
    ClientError error = released.error();
    error.message +=
        "; if the hold is yours, give --token with the number that lock printed, or --request-id";
    return context.fail(error);
  }
  if (!released) return context.fail(released.error());
  if (context.json()) {
    print_json(to_json(*released));
  } else {
    print_output("released{}{}\n",
                 !released->confirmed ? " before, or lost"
                 : released->already  ? " before"
                                      : "",
                 released->next.empty() ? "" : "; next is " + released->next);
  }
  return kOk;
}

int renew(const Context& context, const RenewOptions& options) {
  Expected<LockClient> client = context.client(Context::kManyRetries);
  if (!client) return context.fail(client.error());
  const Expected<Milliseconds> lease = client->renew(options.lane.type, options.lane.resource, options.token,
                                                     *options.lease, options.request_id);
  if (!lease) return context.fail(lease.error());
  if (context.json()) {
    print_json(boost::json::object{{"renewed", true}, {"lease_ms", lease->count()}});
  } else {
    print_output("renewed for {}\n", show_duration(*lease));
  }
  return kOk;
}

int cancel(const Context& context, const CancelOptions& options) {
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  const Expected<bool> cancelled =
      client->cancel(options.lane.type, options.lane.resource, options.request_id);
  if (!cancelled) return context.fail(cancelled.error());
  if (context.json()) {
    print_json(boost::json::object{{"cancelled", *cancelled}});
  } else {
    print_output("{}\n", *cancelled ? "cancelled" : "was not waiting");
  }
  return kOk;
}

void add_lock(Command& program, Context& context) {
  auto options = std::make_shared<LockOptions>();
  Command command = program.command("lock", "Take a lock and print its token; it stays held after this ends.",
                                    "  TOKEN=$(turnstile lock update db-schema --wait 30s --lease 5m)\n"
                                    "  turnstile unlock update db-schema --token \"$TOKEN\"\n");
  command.lane(options->lane);
  command.duration("--wait", options->wait, "how long to wait for the lock (do not wait)");
  command.duration("--lease", options->lease,
                   "the hold ends by itself after this, unless renewed (the server's max-hold)");
  command
      .option("--scope", options->scope,
              "exclude the same operation, or every operation on the resource (the server's default)")
      .one_of({"operation", "resource"});
  command.option("--request-id", options->request_id,
                 "a name of this request: asking again with it finds the same hold or place in the queue");
  command.option("--info", options->info, "a text for people who look at the status");
  command.flag("--dereference", options->dereference, "for delete: release this node's own reference first");
  command.runs(context, options, lock);
}

void add_unlock(Command& program, Context& context) {
  auto options = std::make_shared<UnlockOptions>();
  Command command = program.command("unlock", "Release a hold, as a success or, with --fail, as a failure.",
                                    "  turnstile unlock pull sha256:4f5a --token 1234\n"
                                    "  turnstile unlock pull sha256:4f5a --token 1234 --fail 'disk full'\n");
  command.lane(options->lane);
  command.option("--token", options->token, "the token that lock printed");
  command.option("--request-id", options->request_id, "the hold's request id, if you do not have its token");
  const Option failed = command.option("--fail", options->error,
                                       "the work failed, with this reason: the next waiter takes over");
  command.flag("--permanent", options->permanent, "a retry cannot help: all waiters end with this error")
      .needs(failed);
  command.option("--result", options->result, "a result for the nodes that skip (at most 4 KiB)")
      .excludes(failed);
  command.duration("--keep", options->keep, "how long the success counts (the server's retain-completed)")
      .excludes(failed);
  command.when_given([&context, options, failed] {
    options->failed = failed.given();
    context.run = [&context, options] { return unlock(context, *options); };
  });
}

}  // namespace

void add_lock_commands(Command& program, Context& context) {
  add_lock(program, context);
  add_unlock(program, context);

  auto renewal = std::make_shared<RenewOptions>();
  Command command = program.command("renew", "Prolong the lease of a hold.",
                                    "  turnstile renew update db-schema --token \"$TOKEN\" --lease 5m\n");
  command.lane(renewal->lane);
  command.option("--token", renewal->token, "the token that lock printed").required();
  command.option("--request-id", renewal->request_id, "the hold's request id");
  command.duration("--lease", renewal->lease, "the new lease, from now on").required();
  command.runs(context, renewal, renew);

  auto waiter = std::make_shared<CancelOptions>();
  command =
      program.command("cancel", "Leave a queue.", "  turnstile cancel pull sha256:4f5a --request-id r1\n");
  command.lane(waiter->lane);
  command.option("--request-id", waiter->request_id, "the request id of the waiter").required();
  command.runs(context, waiter, cancel);
}

}  // namespace turnstile::cli
