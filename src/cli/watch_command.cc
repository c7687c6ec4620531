// watch: the event stream, one line each, until Ctrl-C.
#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "base/standard_streams.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/signals.h"
#include "client/wall_time.h"

namespace turnstile::cli {
namespace {

struct WatchOptions {
  Lane lane;
  std::string prefix, after;
  uint64_t count = 0;
};

// "2026-11-16T01:38:13.047765Z  granted    pull sha256:4f5a  node-a  token 7, attempt 2"
std::string event_line(const Event& event) {
  if (event.event == "reset") return fmt::format("{:<27}  reset      some events were missed", "");
  std::string line =
      fmt::format("{:<27}  {:<9}  {} {}  {}", client::show_wall_time(event.completed_at), event.event,
                  one_line(event.operation), one_line(event.resource), one_line(event.node_id));
  if (event.event == "granted") line += fmt::format("  token {}", event.token);
  if (event.attempt > 1) line += fmt::format(", attempt {}", event.attempt);
  if (!event.error.empty()) line += fmt::format("  {}", one_line(event.error));
  if (event.permanent) line += " (permanent)";
  if (!event.result.empty()) line += fmt::format("  result: {}", shortened(one_line(event.result), 60));
  return line;
}

// Threads: the subscription's thread prints; the main one waits for a signal or for the end.
struct Watching {
  const Context& context;
  uint64_t left;
  std::stop_source over{};
  std::optional<ClientError> error{};

  void take(const Event& event) {
    if (over.stop_requested()) return;
    if (context.json()) {
      print_json(to_json(event));
    } else {
      print_output("{}\n", event_line(event));
    }
    if (!flush_output()) over.request_stop();
    if (left == 0) return;  // no limit
    --left;
    if (left == 0) over.request_stop();
  }
};

int watch(const Context& context, const WatchOptions& options) {
  const Signals signals({SIGINT, SIGTERM, SIGHUP});
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  // A stream waits patiently for a server; who starts to watch wants to know that there is none.
  const StopOnSignal stop(signals);
  if (const auto version = client->version(LockClient::Clock::time_point::max(), stop.token()); !version) {
    return stop.signal() != 0 ? kSignalled + stop.signal() : context.fail(version.error());
  }
  Watching watching{.context = context, .left = options.count};
  SubscribeRequest request;
  request.operation = options.lane.type;
  request.resource = options.lane.resource;
  request.prefix = options.prefix;
  request.after = options.after;
  const Expected<Subscription> subscription = client->subscribe(
      request, [&](const Event& event) { watching.take(event); },
      [&](const ClientError& error) {
        watching.error = error;
        watching.over.request_stop();
      });
  if (!subscription) return context.fail(subscription.error());
  std::mutex mutex;
  std::condition_variable_any changed;
  const std::stop_callback interrupted(stop.token(), [&] { watching.over.request_stop(); });
  std::unique_lock lock(mutex);
  changed.wait(lock, watching.over.get_token(), [] { return false; });
  return watching.error ? context.fail(*watching.error) : int(kOk);
}

}  // namespace

void add_watch_command(Command& program, Context& context) {
  auto options = std::make_shared<WatchOptions>();
  Command command =
      program.command("watch", "Follow what happens, one line (json: one object) for each event.",
                      "  turnstile watch\n"
                      "  turnstile watch pull sha256:4f5a\n"
                      "  turnstile watch --prefix sha256: --output json\n");
  command.lane(options->lane, false);
  command.option("--prefix", options->prefix, "only resources whose id begins with this").shown_as("PREFIX");
  command.option("--after", options->after, "continue after the event with this id").shown_as("ID");
  command.option("--count", options->count, "end after this many events (never)");
  command.runs(context, options, watch);
}

}  // namespace turnstile::cli
