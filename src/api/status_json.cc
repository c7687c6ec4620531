#include "api/status_json.h"

#include "api/answer_writer.h"
#include "api/cursor.h"
#include "api/json_append.h"

namespace turnstile {
namespace {

std::string_view name_of(LaneState state) {
  switch (state) {
    case LaneState::idle:
      return "idle";
    case LaneState::held:
      return "held";
    case LaneState::waiting:
      return "waiting";
    case LaneState::completed:
      return "completed";
  }
  return {};
}

void append_requester(std::string& out, std::string_view node_name, const Requester& who) {
  append_text_field(out, node_name, who.node.text);
  if (!who.request.empty()) append_text_field(out, R"(,"request_id":)", who.request.text);
}

void append_queue(std::string& out, const StatusAnswer& answer) {
  out.append(R"(,"queue":[)");
  for (const QueueView& waiter : answer.queue) {
    if (out.back() != '[') out += ',';
    append_requester(out, R"({"node_id":)", waiter.who);
    append_number_field(out, R"(,"position":)", waiter.position);
    append_time_field(out, R"(,"since":)", waiter.since);
    if (!waiter.info.empty()) append_text_field(out, R"(,"info":)", waiter.info);
    out += '}';
  }
  out += ']';
  if (answer.queue_length > answer.queue.size())
    append_number_field(out, R"(,"queue_length":)", answer.queue_length);
}

void append_completion(std::string& out, const CompletionView& completion) {
  append_text_field(out, R"(,"completion":{"node_id":)", completion.node.text);
  append_bool_field(out, R"(,"success":)", completion.success);
  append_text_field(out, R"(,"error":)", completion.error);
  append_bool_field(out, R"(,"permanent":)", completion.permanent);
  append_time_field(out, R"(,"completed_at":)", completion.at);
  if (!completion.result.empty()) append_text_field(out, R"(,"result":)", completion.result);
  out += '}';
}

// What the asking requester polls for.
void append_asking(std::string& out, const StatusAnswer& answer) {
  append_bool_field(out, R"(,"acquired":)", answer.acquired);
  if (answer.acquired) {
    append_number_field(out, R"(,"token":)", uint64_t(answer.token));
    append_number_field(out, R"(,"attempt":)", answer.attempt);
  }
  if (answer.position > 0) append_number_field(out, R"(,"position":)", answer.position);
  append_bool_field(out, R"(,"completed":)", answer.completed);
  append_bool_field(out, R"(,"success":)", answer.success);
  append_text_field(out, R"(,"error":)", answer.error);
  if (answer.done) append_done_fields(out, *answer.done);
}

}  // namespace

void append_done_fields(std::string& out, const DoneView& done) {
  append_text_field(out, R"(,"completed_by":)", done.node.text);
  append_number_field(out, R"(,"completed_ms_ago":)", uint64_t(to_ms(done.ago)));
  if (!done.result.empty()) append_text_field(out, R"(,"result":)", done.result);
}

void append_holder_field(std::string& out, std::string_view name, const HolderView& holder,
                         OperationName asked) {
  out.append(name);
  append_requester(out, R"({"node_id":)", holder.who);
  if (holder.operation != asked) append_text_field(out, R"(,"type":)", holder.operation.text);
  append_number_field(out, R"(,"token":)", uint64_t(holder.token));
  append_time_field(out, R"(,"since":)", holder.since);
  if (holder.lease > Duration(0)) append_number_field(out, R"(,"lease_ms":)", uint64_t(to_ms(holder.lease)));
  if (holder.progress) {
    append_number_field(out, R"(,"done":)", holder.progress->done);
    append_number_field(out, R"(,"total":)", holder.progress->total);
  }
  if (!holder.info.empty()) append_text_field(out, R"(,"info":)", holder.info);
  out += '}';
}

void append_nodes_field(std::string& out, std::string_view name, const NodesView& nodes) {
  out.append(name);
  append_number_field(out, R"({"count":)", nodes.count);
  append_texts_field(out, R"(,"nodes":)", nodes.nodes);
  out += '}';
}

void append_waiters_field(std::string& out, const NodesView& waiters) {
  append_texts_field(out, R"(,"waiters":)", waiters.nodes);
  if (waiters.count > waiters.nodes.size()) append_number_field(out, R"(,"waiters_count":)", waiters.count);
}

unsigned append_status_answer(std::string& out, const StatusAnswer& answer) {
  append_text_field(out, R"({"type":)", answer.lane.operation.text);
  append_text_field(out, R"(,"resource_id":)", answer.lane.resource.text);
  append_text_field(out, R"(,"state":)", name_of(answer.state));
  if (answer.holder) append_holder_field(out, R"(,"holder":)", *answer.holder, answer.lane.operation);
  append_queue(out, answer);
  if (answer.completion) append_completion(out, *answer.completion);
  append_nodes_field(out, R"(,"references":)", answer.references);
  append_waiters_field(out, answer.waiters);
  append_asking(out, answer);
  out += '}';
  return 200;
}

unsigned append_list_answer(std::string& out, std::span<const StatusAnswer> page,
                            const std::optional<LaneName>& next, std::optional<uint64_t> matched) {
  out.append(R"({"locks":[)");
  bool first = true;
  for (const StatusAnswer& lane : page) {
    if (!first) out += ',';
    first = false;
    append_status_answer(out, lane);
  }
  out += ']';
  if (next) {
    out.append(R"(,"next_cursor":")");
    append_cursor(out, *next);
    out += '"';
  }
  if (matched) append_number_field(out, R"(,"matched":)", *matched);
  out += '}';
  return 200;
}

}  // namespace turnstile
