#include "cli/json.h"

#include <fmt/format.h>

#include "base/standard_streams.h"
#include "base/utf8.h"
#include "client/wall_time.h"
// The library itself, once: it needs no other package than its headers.
#include <boost/json/src.hpp>

namespace turnstile::cli {
namespace {

using boost::json::array;
using boost::json::object;

void add_if(object& out, const char* name, const std::string& text) {
  if (!text.empty()) out[name] = text;
}

void add_if(object& out, const char* name, const std::optional<uint64_t>& number) {
  if (number) out[name] = *number;
}

object holder_json(const HolderStatus& holder) {
  object out;
  out["node_id"] = holder.node_id;
  add_if(out, "request_id", holder.request_id);
  out["token"] = holder.token;
  out["since"] = client::show_wall_time(holder.since);
  if (holder.lease.count() > 0) out["lease_ms"] = holder.lease.count();
  add_if(out, "done", holder.done);
  add_if(out, "total", holder.total);
  add_if(out, "info", holder.info);
  return out;
}

object waiter_json(const WaiterStatus& waiter) {
  object out;
  out["node_id"] = waiter.node_id;
  add_if(out, "request_id", waiter.request_id);
  out["position"] = waiter.position;
  out["since"] = client::show_wall_time(waiter.since);
  add_if(out, "info", waiter.info);
  return out;
}

object completion_json(const CompletionStatus& completion) {
  object out;
  out["node_id"] = completion.node_id;
  out["success"] = completion.success;
  out["error"] = completion.error;
  out["permanent"] = completion.permanent;
  out["completed_at"] = client::show_wall_time(completion.completed_at);
  add_if(out, "result", completion.result);
  return out;
}

}  // namespace

array to_json(const std::vector<std::string>& texts) { return array(texts.begin(), texts.end()); }

object to_json(const LaneStatus& lane) {
  object out;
  out["type"] = lane.operation;
  out["resource_id"] = lane.resource;
  out["state"] = lane.state;
  if (lane.holder) out["holder"] = holder_json(*lane.holder);
  array queue;
  for (const WaiterStatus& waiter : lane.queue) queue.push_back(waiter_json(waiter));
  out["queue"] = std::move(queue);
  out["queue_length"] = lane.queue_length;
  if (lane.completion) out["completion"] = completion_json(*lane.completion);
  object references;
  references["count"] = lane.reference_count;
  references["nodes"] = to_json(lane.references);
  out["references"] = std::move(references);
  out["waiters"] = to_json(lane.waiters);
  return out;
}

object to_json(const ReferenceStatus& references) {
  object out;
  out["resource_id"] = references.resource;
  out["count"] = references.count;
  out["nodes"] = to_json(references.nodes);
  out["changed"] = references.changed;
  return out;
}

object to_json(const Released& released) {
  object out;
  out["released"] = true;
  out["already"] = released.already;
  out["confirmed"] = released.confirmed;
  if (!released.result_kept) out["result_kept"] = false;
  if (released.keep) out["keep_ms"] = released.keep->count();
  add_if(out, "next", released.next);
  out["waiters"] = to_json(released.waiters);
  return out;
}

object to_json(const Event& event) {
  object out;
  out["id"] = event.id;
  out["event"] = event.event;
  if (event.event == "reset") return out;
  out["type"] = event.operation;
  out["resource_id"] = event.resource;
  out["node_id"] = event.node_id;
  add_if(out, "request_id", event.request_id);
  out["success"] = event.success;
  out["error"] = event.error;
  add_if(out, "reason", event.reason);
  if (event.permanent) out["permanent"] = true;
  out["completed_at"] = client::show_wall_time(event.completed_at);
  out["token"] = event.token;
  out["attempt"] = event.attempt;
  add_if(out, "result", event.result);
  return out;
}

object to_json(const SkippedWork& work) {
  object out;
  add_if(out, "completed_by", work.node_id);
  if (work.ago) out["completed_ms_ago"] = work.ago->count();
  add_if(out, "result", work.result);
  return out;
}

object to_json(const WaitingStatus& waiting) {
  object out;
  out["position"] = waiting.position;
  add_if(out, "holder", waiting.holder);
  if (waiting.holder_since != WallTime{}) out["holder_since"] = client::show_wall_time(waiting.holder_since);
  add_if(out, "done", waiting.done);
  add_if(out, "total", waiting.total);
  return out;
}

std::string json_text(const boost::json::value& value) { return to_utf8(boost::json::serialize(value)); }

void print_json(const boost::json::value& value) {
  print_output("{}\n", json_text(value));
  flush_output();
}

}  // namespace turnstile::cli
