// status and list: what the server knows, of one lane or of many.
#include <fmt/format.h>

#include <algorithm>

#include "base/standard_streams.h"
#include "cli/json.h"
#include "cli/metrics.h"
#include "cli/program.h"
#include "cli/servers.h"
#include "client/server_url.h"

namespace turnstile::cli {
namespace {

struct StatusOptions {
  Lane lane;
};

struct ListOptions {
  std::string prefix, type, state;
  uint32_t limit = 0;
};

std::string show_holder(const HolderStatus& holder, WallTime now) {
  std::string out =
      fmt::format("{} for {}, token {}", holder.node_id, show_age(holder.since, now), holder.token);
  if (holder.lease.count() > 0) out += ", lease " + show_duration(holder.lease);
  if (const std::string progress = show_progress(holder.done, holder.total); !progress.empty()) {
    out += ", " + progress;
  }
  if (!holder.info.empty()) out += fmt::format(" ({})", one_line(holder.info));
  return out;
}

std::string show_completion(const CompletionStatus& completion, WallTime now) {
  const std::string how = completion.success ? "done" : "failed for all: " + one_line(completion.error);
  const std::string result =
      completion.result.empty() ? "" : ": " + shortened(one_line(completion.result), 60);
  return fmt::format("{} by {}, {} ago{}", how, completion.node_id, show_age(completion.completed_at, now),
                     result);
}

void print_lane(const LaneStatus& lane, WallTime now) {
  print_output("{} {}: {}\n", one_line(lane.operation), one_line(lane.resource), lane.state);
  if (lane.holder) print_output("  holder      {}\n", show_holder(*lane.holder, now));
  for (const WaiterStatus& waiter : lane.queue) {
    print_output("  waiter {:<4} {} for {}\n", waiter.position, waiter.node_id, show_age(waiter.since, now));
  }
  if (lane.queue_length > lane.queue.size()) {
    print_output("  … and {} more\n", lane.queue_length - lane.queue.size());
  }
  if (lane.completion) print_output("  completion  {}\n", show_completion(*lane.completion, now));
  if (!lane.references.empty()) {
    const bool all = lane.reference_count <= lane.references.size();
    print_output("  references  {}: {}{}\n", lane.reference_count, fmt::join(lane.references, ", "),
                 all ? "" : ", …");
  }
}

int lane_status(const Context& context, const Lane& lane) {
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  const Expected<LaneStatus> status = client->status(lane.type, lane.resource);
  if (!status) return context.fail(status.error());
  context.json() ? print_json(to_json(*status)) : print_lane(*status, wall_now());
  return kOk;
}

int server_status(const Context& context) {
  const Expected<Servers> servers = look_at_servers(context);
  if (!servers) return context.fail(servers.error());
  const bool several = servers->replicated || context.servers.size() > 1;
  if (several && servers->leader.empty()) {  // then nobody counts anything
    context.json() ? print_json(to_json(*servers)) : print_output("{}", show(*servers, wall_now()));
    return kOk;
  }
  Context leader = context;
  if (several) leader.servers = {servers->leader};
  // One that others have named, and we have not, is shown no credential (decision 0027).
  const bool known = std::ranges::any_of(
      context.servers, [&](const std::string& url) { return client::same_server(url, servers->leader); });
  if (several && !known) leader.credential = leader.credential_file = "";
  Expected<ServerSight> sight = look_at_server(leader);
  if (!sight && !known && sight.error().code == ErrorCode::unauthenticated)
    sight = ServerSight{.server = servers->leader, .version = {}, .hidden = true, .metrics = {}};
  if (!sight) return context.fail(sight.error());
  const auto number = [&](std::string_view name) { return uint64_t(sight->metrics.sum(name)); };
  if (context.json()) {
    boost::json::object out = to_json(*servers);
    out["server"] = sight->server;
    out["version"] = sight->version;
    if (sight->hidden) {
      print_json(out);
      return kOk;
    }
    for (const char* name : {"locks_held", "waiters", "grants_total", "skips_total", "refusals_total",
                             "resources", "connections", "streams"}) {
      out[name] = number(fmt::format("turnstile_{}", name));
    }
    print_json(out);
    return kOk;
  }
  several ? print_output("{}", show(*servers, wall_now()))
          : print_output("{}: turnstiled {}\n", sight->server, sight->version);
  if (sight->hidden) {
    print_output("this credential may not see the counts: use one with the role read or admin\n");
    return kOk;
  }
  Table table({"held", "waiting", "granted", "skipped", "refused", "resources", "connections", "streams"});
  std::vector<std::string> row;
  for (const char* name :
       {"turnstile_locks_held", "turnstile_waiters", "turnstile_grants_total", "turnstile_skips_total",
        "turnstile_refusals_total", "turnstile_resources", "turnstile_connections", "turnstile_streams"}) {
    row.push_back(fmt::to_string(number(name)));
  }
  table.add(std::move(row));
  print_output("{}", table.text());
  return kOk;
}

int status(const Context& context, const StatusOptions& options) {
  if (options.lane.type.empty()) return server_status(context);
  if (options.lane.resource.empty()) {
    return report(context.output, "a lane is a TYPE and a RESOURCE: name both, or none", "usage", kUsage);
  }
  return lane_status(context, options.lane);
}

std::vector<std::string> row_of(const LaneStatus& lane, WallTime now) {
  const bool held = lane.holder.has_value();
  std::string note = held ? show_progress(lane.holder->done, lane.holder->total) : "";
  if (!held && lane.completion) note = show_completion(*lane.completion, now);
  return {one_line(lane.operation),
          one_line(lane.resource),
          lane.state,
          held ? lane.holder->node_id : "-",
          held ? show_age(lane.holder->since, now) : "-",
          fmt::to_string(lane.queue_length),
          fmt::to_string(lane.reference_count),
          note};
}

// Page by page, so that neither side ever holds all of a large server's lanes. In text mode a table needs all
// its rows for its columns; json prints each page as it comes.
int list(const Context& context, const ListOptions& options) {
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  constexpr uint32_t kPage = 1'000;
  uint32_t left = options.limit == 0 ? UINT32_MAX : options.limit;
  Table table({"TYPE", "RESOURCE", "STATE", "HOLDER", "FOR", "WAITING", "REFERENCES", ""});
  const WallTime now = wall_now();
  LaneFilter filter{.prefix = options.prefix,
                    .operation = options.type,
                    .state = options.state,
                    .limit = std::min(left, kPage),
                    .cursor = {}};
  do {
    const Expected<LanePage> page = client->list(filter);
    if (!page) return context.fail(page.error());
    for (const LaneStatus& lane : page->lanes) {
      context.json() ? print_json(to_json(lane)) : table.add(row_of(lane, now));
      if (--left == 0) break;
    }
    filter.cursor = page->next_cursor;
    filter.limit = std::min(left, kPage);
  } while (!filter.cursor.empty() && left > 0);
  if (!context.json()) print_output("{}", table.text());
  return kOk;
}

}  // namespace

void add_look_commands(Command& program, Context& context) {
  auto lane = std::make_shared<StatusOptions>();
  Command command =
      program.command("status", "Show one lane, or without arguments the servers.",
                      "  turnstile status\n"
                      "  turnstile status --server https://a:8086,https://b:8086,https://c:8086\n"
                      "  turnstile status pull sha256:4f5a\n");
  command.lane(lane->lane, false);
  command.runs(context, lane, status);

  auto filter = std::make_shared<ListOptions>();
  command = program.command(
      "list", "List what is held, waited for or remembered (json: one object for each line).",
      "  turnstile list --state held\n"
      "  turnstile list --prefix sha256: --type pull --output json\n"
      "A resource that is only referenced is in no list: turnstile refs RESOURCE shows it.\n");
  command.option("--prefix", filter->prefix, "only resources whose id begins with this").shown_as("PREFIX");
  command.option("--type", filter->type, "only this operation").shown_as("TYPE");
  command.option("--state", filter->state, "only lanes in this state: idle, held, waiting, completed")
      .one_of({"idle", "held", "waiting", "completed"});
  command.option("--limit", filter->limit, "at most this many (all)");
  command.runs(context, filter, list);
}

}  // namespace turnstile::cli
