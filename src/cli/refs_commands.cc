// refs and break: what an operator repairs with.
#include <fmt/format.h>

#include "base/standard_streams.h"
#include "cli/json.h"
#include "cli/program.h"

namespace turnstile::cli {
namespace {

struct RefsOptions {
  std::string resource, release_node;
  bool add = false, release = false;
};

struct BreakOptions {
  Lane lane;
  std::string reason;
  uint64_t token = 0;
};

int release_node(const Context& context, LockClient& client, const std::string& node) {
  const Expected<uint32_t> count = client.release_node(node);
  if (!count) return context.fail(count.error());
  if (context.json()) {
    print_json(boost::json::object{{"node_id", node}, {"count", *count}});
  } else {
    print_output("released {} reference{} of {}\n", *count, *count == 1 ? "" : "s", node);
  }
  return kOk;
}

int refs(const Context& context, const RefsOptions& options) {
  if (options.resource.empty() == options.release_node.empty()) {
    return report(context.output,
                  "refs needs a RESOURCE, or else --release-node NODE; see turnstile refs --help", "usage",
                  kUsage);
  }
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  if (!options.release_node.empty()) return release_node(context, *client, options.release_node);
  const Expected<ReferenceStatus> references = options.add       ? client->add_reference(options.resource)
                                               : options.release ? client->release_reference(options.resource)
                                                                 : client->references(options.resource);
  if (!references) return context.fail(references.error());
  if (context.json()) {
    print_json(to_json(*references));
  } else {
    print_output("{} reference{}{}\n", references->count, references->count == 1 ? "" : "s",
                 references->nodes.empty() ? "" : fmt::format(": {}", fmt::join(references->nodes, ", ")));
  }
  return kOk;
}

int break_hold(const Context& context, const BreakOptions& options) {
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  const Expected<std::string> node =
      client->break_hold(options.lane.type, options.lane.resource, options.reason, options.token);
  if (!node && node.error().reason == "stale_token") {
    ClientError error = node.error();  // the server's words are for the holder
    error.message =
        fmt::format("another hold has the lock by now, not the one with token {}: see turnstile status {} {}",
                    options.token, options.lane.type, options.lane.resource);
    return context.fail(error);
  }
  if (!node) return context.fail(node.error());
  if (context.json()) {
    print_json(boost::json::object{{"broken", true}, {"node_id", *node}});
  } else {
    print_output("broken: it was held by {}\n", *node);
  }
  return kOk;
}

int forget(const Context& context, const Lane& lane) {
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  const Expected<bool> forgotten = client->forget(lane.type, lane.resource);
  if (!forgotten) return context.fail(forgotten.error());
  if (context.json()) {
    print_json(boost::json::object{{"forgotten", *forgotten}});
  } else {
    print_output("{}\n", *forgotten ? "forgotten: the next request does the work again" : "nothing was kept");
  }
  return kOk;
}

}  // namespace

void add_refs_commands(Command& program, Context& context) {
  auto options = std::make_shared<RefsOptions>();
  Command command = program.command("refs", "Show, add or release references.",
                                    "  turnstile refs sha256:4f5a\n"
                                    "  turnstile refs sha256:4f5a --release --node node-a\n"
                                    "  turnstile refs --release-node node-that-died\n");
  command.option("RESOURCE", options->resource,
                 "the resource: without --add or --release, show its references");
  Option add = command.flag("--add", options->add, "this node uses it");
  Option release = command.flag("--release", options->release, "this node does not use it any more");
  const Option node =
      command.option("--release-node", options->release_node, "release all references of this node")
          .shown_as("NODE");
  add.excludes(release).excludes(node);
  release.excludes(node);
  command.runs(context, options, refs);

  auto breaking = std::make_shared<BreakOptions>();
  command =
      program.command("break", "End another node's hold; the next waiter takes over and sees the reason.",
                      "  turnstile break pull sha256:4f5a --reason 'node-a was switched off'\n");
  command.lane(breaking->lane);
  command.option("--reason", breaking->reason, "the reason that everybody sees").required();
  command.option("--token", breaking->token,
                 "end only the hold with this token, as `turnstile status` shows it");
  command.runs(context, breaking, break_hold);

  auto forgetting = std::make_shared<Lane>();
  command = program.command("forget", "Forget how a lane's work ended, so that it is done again.",
                            "  turnstile forget pull sha256:4f5a\n"
                            "  turnstile forget once nightly-2026-11-18\n");
  command.lane(*forgetting);
  command.runs(context, forgetting, forget);
}

}  // namespace turnstile::cli
