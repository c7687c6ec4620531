#include "api/event_json.h"

#include "api/json_append.h"

namespace turnstile {

std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::granted:
      return "granted";
    case EventKind::completed:
      return "completed";
    case EventKind::failed:
      return "failed";
    case EventKind::expired:
      return "expired";
    case EventKind::broken:
      return "broken";
    case EventKind::cancelled:
      return "cancelled";
    case EventKind::refused:
      return "refused";
  }
  return {};
}

void append_event_json(std::string& out, const Event& event) {
  append_text_field(out, R"({"type":)", event.lane.operation.text);
  append_text_field(out, R"(,"resource_id":)", event.lane.resource.text);
  append_text_field(out, R"(,"node_id":)", event.who.node.text);
  append_bool_field(out, R"(,"success":)", event.kind == EventKind::completed);
  append_text_field(out, R"(,"error":)", event.error);
  append_time_field(out, R"(,"completed_at":)", event.at);
  append_text_field(out, R"(,"event":)", name_of(event.kind));
  append_number_field(out, R"(,"token":)", uint64_t(event.token));
  append_number_field(out, R"(,"attempt":)", event.attempt);
  if (!event.reason.empty()) append_text_field(out, R"(,"reason":)", event.reason);
  if (!event.who.request.empty()) append_text_field(out, R"(,"request_id":)", event.who.request.text);
  if (event.permanent) out.append(R"(,"permanent":true)");
  if (!event.result.empty()) append_text_field(out, R"(,"result":)", event.result);
  out += '}';
}

void append_sse_event(std::string& out, uint64_t id, const Event& event) {
  if (id != 0) {
    append_number_field(out, "id: ", id);
    out += '\n';
  }
  out.append("data: ");
  append_event_json(out, event);
  out.append("\n\n");
}

void append_sse_reset(std::string& out, uint64_t id) {
  append_number_field(out, "event: reset\nid: ", id);
  out.append(
      "\ndata: {\"event\":\"reset\",\"message\":\"events were missed and are no longer known: read the "
      "current state\"}"
      "\n\n");
}

}  // namespace turnstile
