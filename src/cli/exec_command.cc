// exec: run a command while holding a lock, once in the whole cluster.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/standard_streams.h"
#include "cli/exec_options.h"
#include "cli/exec_session.h"
#include "cli/json.h"
#include "cli/operation_hint.h"
#include "cli/program.h"

namespace turnstile::cli {
namespace {

constexpr int kNotFound = 127, kNotExecutable = 126;  // as shells have it
constexpr int kTimedOut = 124;                        // as timeout(1) has it

// A line for people, or an object: the command's own stdout stays its own.
void say(const Context& context, const ExecOptions& options, boost::json::object state,
         std::string_view text) {
  if (options.quiet) return;
  if (context.json()) {
    state["message"] = text;
    print_error("{}\n", json_text(state));
  } else {
    print_error("turnstile: {}\n", one_line(text));
  }
}

int exit_code_of(const CommandEnd& end) {
  switch (end.kind) {
    case CommandEnd::Kind::exited:
      return end.value;
    case CommandEnd::Kind::signalled:
      return kSignalled + end.value;
    case CommandEnd::Kind::not_started:
      return end.value == ENOENT ? kNotFound : kNotExecutable;
    case CommandEnd::Kind::timed_out:
      return kTimedOut;
    default:
      return kUnexpected;
  }
}

// What it has written to $TURNSTILE_RESULT_FD. One that cannot be kept is left out rather than cut: whoever
// reads half of it might take it for all.
std::string result_of(const Context& context, const ExecSession& session) {
  std::expected<std::string, std::string> result = session.result();
  if (result) return std::move(*result);
  (void)report(context.output, fmt::format("the result is left out: it {}", result.error()), "result", kOk);
  return "";
}

WorkResult work_of(const Context& context, const ExecOptions& options, const ExecSession& session,
                   const CommandEnd& end) {
  switch (end.kind) {
    case CommandEnd::Kind::exited:
      if (end.value == 0) return WorkResult::succeeded(result_of(context, session), options.keep);
      if (std::ranges::count(options.permanent_exit_codes, end.value) > 0) {
        return WorkResult::failed_for_all(fmt::format("exit code {}", end.value));
      }
      return WorkResult::failed(fmt::format("exit code {}", end.value));
    case CommandEnd::Kind::signalled:
      return WorkResult::failed(fmt::format("killed by signal {} ({})", end.value, strsignal(end.value)));
    case CommandEnd::Kind::not_started:
      return WorkResult::failed(
          fmt::format("cannot run {}: {}", context.command.front(), std::strerror(end.value)));
    case CommandEnd::Kind::timed_out:
      return WorkResult::failed(fmt::format("timed out after {}", show_duration(*options.timeout)));
    default:
      return WorkResult::failed("the process that supervised the command was killed");
  }
}

// The hold itself is left to its destructor, which tries to release it for a second or two: whether the
// server hears that or not, the next in line goes on.
int report_lost(const Context& context, const ExecOptions& options, const CommandEnd& end) {
  const char* why = end.kind == CommandEnd::Kind::lost ? "the server says that the hold is gone"
                                                       : "no server confirmed the lease in time";
  return report(context.output,
                fmt::format("lost {}: {}; the command and its group were ended", options.lane_text(), why),
                "lost", kLost);
}

// What happened, when all went as it should.
void say_ran(const Context& context, const ExecOptions& options, const WorkResult& work,
             const Released& released, Milliseconds took, std::string_view hint) {
  if (!work.success) {
    const char* next = work.permanent          ? "all waiters end with this error"
                       : released.next.empty() ? "the next request runs it again"
                                               : "the next waiter runs it";
    return say(context, options, {{"state", "failed"}, {"error", work.error}},
               fmt::format("ran here, {}, and failed after {} ({}): {}", options.lane_text(),
                           show_duration(took), work.error, next));
  }
  const char* doubt =
      released.confirmed ? "" : "; whether it counts is not known: the lease may have run out before";
  const char* lost = released.result_kept ? "" : "; the server has no room for the result";
  say(context, options, {{"state", "ran"}, {"took_ms", took.count()}},
      fmt::format("ran here: {}, in {}{}{}{}", options.lane_text(), show_duration(took), doubt, lost, hint));
}

int release(const Context& context, const ExecOptions& options, const Signals& signals, Hold& hold,
            const CommandEnd& end, const WorkResult& work, Milliseconds took, std::string_view hint) {
  std::optional<StopOnSignal> stop;  // the command has ended: whoever sends one now means us
  try {
    stop.emplace(signals);
  } catch (const std::system_error&) {
    stop.reset();  // no thread to be had; what the command did is to be told all the same
  }
  const Expected<Released> released = hold.release(work, stop ? stop->token() : std::stop_token());
  if (!released && stop && stop->signal() != 0) hold.detach();
  if (end.kind == CommandEnd::Kind::not_started || end.kind == CommandEnd::Kind::unsupervised) {
    const std::string untold =
        released ? "" : fmt::format("; that could not be reported: {}", released.error().message);
    return report(context.output, work.error + untold, "failed", exit_code_of(end));
  }
  if (released) {
    say_ran(context, options, work, *released, took, hint);
    return exit_code_of(end);
  }
  ClientError error = released.error();
  error.message = fmt::format("the command {}, but that could not be reported: {}",
                              work.success ? "succeeded" : "failed (" + work.error + ")", error.message);
  const int code = context.fail(error);
  return work.success ? code : exit_code_of(end);
}

int skip(const Context& context, const ExecOptions& options, const LockResult& result) {
  const SkippedWork& work = result.work;
  boost::json::object state = to_json(work);
  state["state"] = "skipped";
  const std::string who = work.node_id.empty() ? fmt::format("{} has been done already", options.lane_text())
                                               : fmt::format("{} did {}", work.node_id, options.lane_text());
  say(context, options, std::move(state),
      fmt::format("skipped: {}{}{}", who, work.ago ? fmt::format(" {} ago", show_duration(*work.ago)) : "",
                  options.print_result && work.result.empty()
                      ? "; it left no result (a command writes it to $TURNSTILE_RESULT_FD)"
                      : ""));
  if (options.print_result && !work.result.empty()) print_output("{}\n", work.result);
  return options.skip_code;
}

int exec(const Context& context, const ExecOptions& options) {
  if (context.command.empty()) {
    return report(context.output,
                  fmt::format("write the command to run after --: turnstile {} -- COMMAND", options.words()),
                  "usage", kUsage);
  }
  if (options.lease_or_default(context.servers.size() > 1).count() < 100) {
    return report(context.output,
                  "--lease must be 100ms or more: without it the command could outlive its hold", "usage",
                  kUsage);
  }
  if (const std::string hint = hint_about(options.lane.type, "runs the command");
      !hint.empty() && !context.json())
    say(context, options, {}, hint);
  const Signals signals({SIGINT, SIGTERM, SIGHUP});
  ExecSession session(context.command, signals);  // before the client has threads
  Expected<LockClient> client = context.client(Context::kManyRetries);
  if (!client) return context.fail(client.error());
  ExecWait wait = wait_for_turn(context, options, *client, signals);
  if (!wait.result && wait.result.error().code == ErrorCode::cancelled && wait.signal != 0) {
    return report(context.output, "interrupted; the place in the queue is given up", "interrupted",
                  kSignalled + wait.signal);
  }
  if (!wait.result && wait.result.error().code == ErrorCode::failed) {
    ClientError error = wait.result.error();
    error.message = fmt::format(
        "{} failed permanently on another node ({}); the server refuses it for a while. To run it sooner: "
        "turnstile forget {} {}",
        options.lane_text(), error.message, options.lane.type, options.lane.resource);
    return context.fail(error);
  }
  if (!wait.result) return context.fail(wait.result.error());
  if (wait.result->skipped()) return skip(context, options, *wait.result);
  Hold hold = std::move(wait.result->hold);
  if (wait.signal != 0) {
    // It goes with its destructor, which is not as patient as a release.
    return report(context.output, "interrupted before the command began", "interrupted",
                  kSignalled + wait.signal);
  }
  const std::string hint = wait.waited && hold.attempt() == 1 && !context.json()
                               ? hint_after_waiting(options.lane.type)
                               : std::string();
  const auto began = Steady::now();
  const CommandEnd end =
      session.run(hold, options.lease_or_default(context.servers.size() > 1), options.timeout);
  if (end.kind == CommandEnd::Kind::lost || end.kind == CommandEnd::Kind::in_danger) {
    return report_lost(context, options, end);
  }
  return release(context, options, signals, hold, end, work_of(context, options, session, end),
                 std::chrono::duration_cast<Milliseconds>(Steady::now() - began), hint);
}

// What exec and once have in common.
void add_options(Command& command, const std::shared_ptr<ExecOptions>& options) {
  command.duration("--wait", options->wait, "how long to wait for the lock (no limit)");
  command.duration(
      "--lease", options->lease,
      "if no server can be reached, the next node waits at most this long (10s; 15s with several servers)");
  command.duration("--timeout", options->timeout,
                   "how long the command may take; then it counts as failed (no limit)");
  command.option("--info", options->info, "a text for people who look at the status");
  command.flag("--bond", options->bond,
               "hand over within the server's bond-grace when this process is killed (docs/cli.md)");
  command
      .list("--permanent-exit-codes", options->permanent_exit_codes,
            "exit codes after which no node tries again")
      .between(1, 255)
      .shown_as("N[,N...]");
  command.flag("--print-result", options->print_result,
               "after a skip, print the result of the run to stdout");
  command.option("--skip-code", options->skip_code, "the exit code of a skip (0)")
      .between(0, 255)
      .shown_as("N");
  command.flag("--quiet", options->quiet, "print only errors");
}

constexpr const char* kEnvironment =
    "The command's environment has TURNSTILE_TOKEN, TURNSTILE_ATTEMPT, TURNSTILE_PREVIOUS_ERROR,\n"
    "TURNSTILE_OPERATION and TURNSTILE_RESOURCE. The command may write lines \"DONE TOTAL\" to\n"
    "the descriptor $TURNSTILE_PROGRESS_FD, and a result for the nodes that skip to\n"
    "$TURNSTILE_RESULT_FD.\n";

}  // namespace

void add_exec_command(Command& program, Context& context) {
  auto options = std::make_shared<ExecOptions>();
  Command command = program.command(
      "exec", "Run a command while holding a lock: turnstile exec TYPE RESOURCE -- COMMAND...",
      fmt::format(
          "  turnstile exec pull sha256:4f5a -- fetch-layer sha256:4f5a\n"
          "  turnstile exec migrate db --wait 10m -- ./migrate.sh\n"
          "TYPE decides what a success means. once, pull, delete: the waiters skip. update, and any name\n"
          "that the server does not know (also a mistyped \"Pull\"), is a plain mutex: every node runs the\n"
          "command, one after the other. For a job that must run once: turnstile once.\n{}",
          kEnvironment));
  command.takes_a_command();
  command.lane(options->lane);
  add_options(command, options);
  command
      .option("--scope", options->scope,
              "exclude the same operation, or every operation on the resource (the server's default)")
      .one_of({"operation", "resource"});
  command.runs(context, options, exec);
}

void add_once_command(Command& program, Context& context) {
  auto options = std::make_shared<ExecOptions>();
  options->lane.type = operations::kOnce;
  Command command =
      program.command("once", "Run a command once in the whole fleet: turnstile once KEY -- COMMAND...",
                      fmt::format("  turnstile once nightly-$(date +%F) --keep 20h -- ./report.sh\n"
                                  "  turnstile once warm-cache --keep 1h --print-result -- sh -c 'echo v7 "
                                  ">&$TURNSTILE_RESULT_FD'\n{}",
                                  kEnvironment));
  command.takes_a_command();
  command.option("KEY", options->lane.resource, "the name of the job: any text").required();
  command.duration("--keep", options->keep, "how long a success counts (the server's retain-completed)");
  add_options(command, options);
  command.runs(context, options, exec);
}

}  // namespace turnstile::cli
