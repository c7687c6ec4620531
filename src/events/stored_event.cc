#include "events/stored_event.h"

#include <cstring>

namespace turnstile {
namespace {

// The texts follow in this order.
struct Head {
  int64_t at;
  Token token;
  uint32_t attempt;
  uint32_t operation, resource, node, request, error, reason, result;  // sizes
  EventKind kind;
  bool permanent;
};

Head load_head(std::string_view stored) {
  Head head;
  std::memcpy(&head, stored.data(), sizeof head);
  return head;
}

// Cuts the next `size` bytes off `rest`.
std::string_view take(std::string_view& rest, uint32_t size) {
  const std::string_view text = rest.substr(0, size);
  rest.remove_prefix(size);
  return text;
}

char* put(char* out, std::string_view text) {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

size_t stored_size(const Event& event) {
  return sizeof(Head) + event.lane.operation.text.size() + event.lane.resource.text.size() +
         event.who.node.text.size() + event.who.request.text.size() + event.error.size() +
         event.reason.size() + event.result.size();
}

void store_event(const Event& event, char* out) {
  Head head{};
  head.at = event.at.time_since_epoch().count();
  head.token = event.token;
  head.attempt = event.attempt;
  head.operation = uint32_t(event.lane.operation.text.size());
  head.resource = uint32_t(event.lane.resource.text.size());
  head.node = uint32_t(event.who.node.text.size());
  head.request = uint32_t(event.who.request.text.size());
  head.error = uint32_t(event.error.size());
  head.reason = uint32_t(event.reason.size());
  head.result = uint32_t(event.result.size());
  head.kind = event.kind;
  head.permanent = event.permanent;
  std::memcpy(out, &head, sizeof head);
  out = put(out + sizeof head, event.lane.operation.text);
  out = put(out, event.lane.resource.text);
  out = put(out, event.who.node.text);
  out = put(out, event.who.request.text);
  out = put(out, event.error);
  out = put(out, event.reason);
  put(out, event.result);
}

LaneName load_lane(std::string_view stored) {
  const Head head = load_head(stored);
  std::string_view rest = stored.substr(sizeof head);
  LaneName lane;
  lane.operation = OperationName(take(rest, head.operation));
  lane.resource = ResourceId(take(rest, head.resource));
  return lane;
}

Event load_event(std::string_view stored) {
  const Head head = load_head(stored);
  std::string_view rest = stored.substr(sizeof head);
  Event event;
  event.kind = head.kind;
  event.lane.operation = OperationName(take(rest, head.operation));
  event.lane.resource = ResourceId(take(rest, head.resource));
  event.who.node = NodeId(take(rest, head.node));
  event.who.request = RequestId(take(rest, head.request));
  event.at = Time(Duration(head.at));
  event.token = head.token;
  event.attempt = head.attempt;
  event.permanent = head.permanent;
  event.error = take(rest, head.error);
  event.reason = take(rest, head.reason);
  event.result = take(rest, head.result);
  return event;
}

}  // namespace turnstile
