// exec: run a command while holding a lock, once in the whole cluster.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cli/exec_options.h"
#include "cli/exec_session.h"
#include "cli/json.h"
#include "cli/program.h"

namespace turnstile::cli {
namespace {

constexpr int kNotFound = 127, kNotExecutable = 126;  // as shells have it

// A line for people, or an object: the command's own stdout stays its own.
void say(const Context& context, const std::string& state, const std::string& text) {
  if (context.json()) {
    fmt::print(stderr, "{}\n",
               boost::json::serialize(boost::json::object{{"state", state}, {"message", text}}));
  } else {
    fmt::print(stderr, "turnstile: {}\n", one_line(text));
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
    default:
      return kUnexpected;
  }
}

WorkResult result_of(const Context& context, const ExecOptions& options, const CommandEnd& end) {
  switch (end.kind) {
    case CommandEnd::Kind::exited:
      if (end.value == 0) return WorkResult::succeeded();
      if (std::ranges::count(options.permanent_exit_codes, end.value) > 0) {
        return WorkResult::failed_for_all(fmt::format("exit code {}", end.value));
      }
      return WorkResult::failed(fmt::format("exit code {}", end.value));
    case CommandEnd::Kind::signalled:
      return WorkResult::failed(fmt::format("killed by signal {} ({})", end.value, strsignal(end.value)));
    case CommandEnd::Kind::not_started:
      return WorkResult::failed(
          fmt::format("cannot run {}: {}", context.command.front(), std::strerror(end.value)));
    default:
      return WorkResult::failed("the process that watched over the command was killed");
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

int release(const Context& context, const ExecOptions& options, const Signals& signals, Hold& hold,
            const CommandEnd& end) {
  const WorkResult work = result_of(context, options, end);
  const StopOnSignal stop(signals);  // the command has ended: whoever sends one now means us
  const Expected<Released> released = hold.release(work, stop.token());
  if (!released && stop.signal() != 0) hold.detach();
  if (end.kind == CommandEnd::Kind::not_started || end.kind == CommandEnd::Kind::unsupervised) {
    return report(context.output, work.error, "failed", exit_code_of(end));
  }
  if (released) return exit_code_of(end);
  ClientError error = released.error();
  error.message = fmt::format("the command {}, but that could not be reported: {}",
                              work.success ? "succeeded" : "failed (" + work.error + ")", error.message);
  const int code = context.fail(error);
  return work.success ? code : exit_code_of(end);
}

int exec(const Context& context, const ExecOptions& options) {
  if (context.command.empty()) {
    return report(context.output, "exec needs a command behind --: turnstile exec TYPE RESOURCE -- COMMAND",
                  "usage", kUsage);
  }
  if (options.lease_or_default().count() < 100) {
    return report(context.output,
                  "exec needs a lease of 100ms or more: without it the command could outlive its hold",
                  "usage", kUsage);
  }
  const Signals signals({SIGINT, SIGTERM, SIGHUP});
  ExecSession session(context.command, signals);  // before the client has threads
  Expected<LockClient> client = context.client(Context::kManyRetries);
  if (!client) return context.fail(client.error());
  ExecWait wait = wait_for_turn(context, options, *client, signals);
  if (!wait.result && wait.result.error().code == ErrorCode::cancelled && wait.signal != 0) {
    return report(context.output, "interrupted; the place in the queue is given up", "interrupted",
                  kSignalled + wait.signal);
  }
  if (!wait.result) return context.fail(wait.result.error());
  if (wait.result->skipped) {
    say(context, "skipped", fmt::format("skipped: {} has been done already", options.lane_text()));
    return kOk;
  }
  Hold hold = std::move(wait.result->hold);
  if (wait.signal != 0) {
    // It goes with its destructor, which is not as patient as a release.
    return report(context.output, "interrupted before the command began", "interrupted",
                  kSignalled + wait.signal);
  }
  const CommandEnd end = session.run(hold, options.lease_or_default());
  if (end.kind == CommandEnd::Kind::lost || end.kind == CommandEnd::Kind::in_danger) {
    return report_lost(context, options, end);
  }
  return release(context, options, signals, hold, end);
}

}  // namespace

void add_exec_command(Command& program, Context& context) {
  auto options = std::make_shared<ExecOptions>();
  Command command = program.command(
      "exec", "Run a command while holding a lock: turnstile exec TYPE RESOURCE -- COMMAND...",
      "  turnstile exec pull sha256:4f5a -- fetch-layer sha256:4f5a\n"
      "  turnstile exec migrate db --wait 10m -- ./migrate.sh    # a plain mutex, for any name\n"
      "The command finds TURNSTILE_TOKEN, TURNSTILE_ATTEMPT, TURNSTILE_PREVIOUS_ERROR,\n"
      "TURNSTILE_OPERATION and TURNSTILE_RESOURCE in its environment, and may write lines\n"
      "\"DONE TOTAL\" to the descriptor $TURNSTILE_PROGRESS_FD.\n");
  command.lane(options->lane);
  command.duration("--wait", options->wait, "how long to wait for one's turn (for ever)");
  command.duration("--lease", options->lease, "how soon a lost connection costs the hold (10s)");
  command.option("--scope", options->scope, "what it excludes (the server's default)")
      .one_of({"operation", "resource"});
  command.option("--info", options->info, "free text for people");
  command.flag("--bond", options->bond,
               "hand over within the server's bond-grace when this process is killed (docs/cli.md)");
  command.list("--permanent-exit-codes", options->permanent_exit_codes, "with these nobody is to try again")
      .between(1, 255)
      .shown_as("N[,N...]");
  command.runs(context, options, exec);
}

}  // namespace turnstile::cli
