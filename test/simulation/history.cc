#include "history.h"

#include <fmt/format.h>
#include <simdjson.h>

namespace turnstile::sim {
namespace {

using simdjson::dom::element;

simdjson::dom::parser& parser() {
  static simdjson::dom::parser one;
  return one;
}

std::string text_in(element json, const char* name) {
  std::string_view text;
  return json[name].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}
uint64_t number_in(element json, const char* name) {
  uint64_t number = 0;
  return json[name].get(number) == simdjson::SUCCESS ? number : 0;
}
bool flag_in(element json, const char* name) {
  bool flag = false;
  return json[name].get(flag) == simdjson::SUCCESS && flag;
}
std::optional<Duration> given_time_in(element json, const char* name) {
  uint64_t number = 0;
  if (json[name].get(number) != simdjson::SUCCESS) return std::nullopt;
  return std::chrono::milliseconds(int64_t(number));
}
Duration time_in(element json, const char* name) {
  return std::chrono::milliseconds(int64_t(number_in(json, name)));
}

CallKind kind_of(std::string_view path) {
  static const std::map<std::string_view, CallKind> kinds = {
      {"/lock", CallKind::lock},
      {"/unlock", CallKind::unlock},
      {"/renew", CallKind::renew},
      {"/cancel", CallKind::cancel},
      {"/lock/status", CallKind::status},
      {"/admin/break", CallKind::break_hold},
      {"/admin/forget", CallKind::forget},
      {"/refs", CallKind::references},
      {"/refs/add", CallKind::add_reference},
      {"/refs/release", CallKind::release_reference},
      {"/refs/release_node", CallKind::release_node},
  };
  const auto found = kinds.find(path);
  return found == kinds.end() ? CallKind::other : found->second;
}

void read_asked(Call& call, element json, bool by_default) {
  call.type = text_in(json, "type");
  call.resource = text_in(json, "resource_id");
  call.node = text_in(json, "node_id");
  call.request = text_in(json, "request_id");
  const std::string scope = text_in(json, "scope");
  call.resource_scope = scope.empty() ? by_default : scope == "resource";
  call.monitor = flag_in(json, "monitor");
  call.dereference = flag_in(json, "dereference");
  bool success = false;
  if (json["success"].get(success) != simdjson::SUCCESS) success = text_in(json, "error").empty();
  call.success = success;  // S9
  call.permanent = flag_in(json, "permanent");
  element done;
  call.progress = json["done"].get(done) == simdjson::SUCCESS;
  call.token = number_in(json, "token");
  call.lease = time_in(json, "lease_ms");
  call.wait = time_in(json, "wait_ms");
  call.keep = given_time_in(json, "keep_ms");
  call.result = text_in(json, "result");
}

void read_told(Call& call, element json) {
  call.state = text_in(json, "state");
  call.told_token = number_in(json, "token");
  call.position = uint32_t(number_in(json, "position"));
  call.done = flag_in(json, "released") || flag_in(json, "renewed") || flag_in(json, "cancelled") ||
              flag_in(json, "broken") || flag_in(json, "changed") || flag_in(json, "forgotten");
  call.told_keep = given_time_in(json, "keep_ms");
  call.told_result = text_in(json, "result");
  call.completed_by = text_in(json, "completed_by");
  call.already = flag_in(json, "already");
  element holder;
  if (json["holder"].get(holder) == simdjson::SUCCESS && holder.is_object())
    call.holder_token = number_in(holder, "token");
  simdjson::dom::array nodes;
  if (call.kind == CallKind::references && json["nodes"].get(nodes) == simdjson::SUCCESS)
    for (const element node : nodes) call.nodes.emplace_back(std::string_view(node));
  call.more_nodes = !text_in(json, "next").empty() && call.kind == CallKind::references;
}

}  // namespace

std::string_view name_of(CallKind kind) {
  static constexpr std::string_view names[] = {"lock",          "unlock",         "renew",        "cancel",
                                               "status",        "break",          "forget",       "refs",
                                               "add reference", "drop reference", "release node", "other"};
  return names[size_t(kind)];
}

std::string query_field(std::string_view target, std::string_view name) {
  size_t at = target.find('?');
  while (at != target.npos) {
    const std::string_view rest = target.substr(at + 1);
    const size_t end = rest.find('&');
    const std::string_view field = rest.substr(0, end);
    if (field.starts_with(name) && field.substr(name.size()).starts_with('='))
      return std::string(field.substr(name.size() + 1));
    at = end == rest.npos ? target.npos : at + 1 + end;
  }
  return {};
}

std::vector<Call*> History::begin(const WireRequest& request, const LinkPtr& link, Time now) {
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  std::vector<Call*> begun;
  const auto add = [&](CallKind kind) -> Call& {
    Call& call = calls.emplace_back();
    call.kind = kind;
    call.invoked = now;
    begun.push_back(&call);
    return call;
  };
  if (path == "/batch") {
    const simdjson::padded_string padded(request.body);
    element json = parser().parse(padded);
    for (const element item : json["requests"].get_array()) {
      Call& call = add(kind_of("/" + text_in(item, "call")));
      read_asked(call, item, resource_scope_by_default);
      call.monitor = false;  // which a batch ignores, as it does
      call.wait = {};
    }
    return begun;
  }
  Call& call = add(kind_of(path));
  call.link = link;
  call.number = link->requests;
  if (request.post) {
    const simdjson::padded_string padded(request.body);
    read_asked(call, parser().parse(padded), resource_scope_by_default);
  } else {
    call.type = query_field(request.target, "type");
    call.resource = query_field(request.target, "resource_id");
    call.node = query_field(request.target, "node_id");
    call.request = query_field(request.target, "request_id");
  }
  return begun;
}

void History::end(const std::vector<Call*>& ended, unsigned status, const std::string& body, uint64_t stamp,
                  Time now) {
  const simdjson::padded_string padded(body);
  element json;
  const bool readable = parser().parse(padded).get(json) == simdjson::SUCCESS;
  simdjson::dom::array items;
  const bool batch = readable && json["answers"].get(items) == simdjson::SUCCESS;
  for (size_t i = 0; i < ended.size(); ++i) {
    Call& call = *ended[i];
    if (status >= 500) {  // it may have been done all the same, or will never be known (S32)
      call.status = status;
      continue;
    }
    call.returned = now;
    call.status = status;
    call.stamp = stamp;
    if (!readable) continue;
    if (!batch) {
      read_told(call, json);
    } else {
      const element item = items.at(i);
      call.status = unsigned(number_in(item, "status"));
      read_told(call, item);
    }
  }
}

void History::read(SeenStream& stream, const std::string& bytes, uint64_t stamp, Time now) {
  stream.rest += bytes;
  for (size_t end; (end = stream.rest.find("\n\n")) != std::string::npos;) {
    const std::string event = stream.rest.substr(0, end);
    stream.rest.erase(0, end + 2);
    SeenEvent seen{.seen = now, .stamp = stamp};
    std::string data;
    for (size_t at = 0; at < event.size();) {
      const size_t newline = std::min(event.find('\n', at), event.size());
      const std::string line = event.substr(at, newline - at);
      if (line.starts_with("id: ")) seen.id = std::stoull(line.substr(4));
      if (line == "event: reset") seen.reset = true;
      if (line.starts_with("data: ")) data = line.substr(6);
      at = newline + 1;
    }
    if (data.empty()) continue;  // a comment
    const simdjson::padded_string padded(data);
    const element json = parser().parse(padded);
    seen.kind = text_in(json, "event");
    seen.type = text_in(json, "type");
    seen.resource = text_in(json, "resource_id");
    seen.node = text_in(json, "node_id");
    seen.request = text_in(json, "request_id");
    seen.token = number_in(json, "token");
    seen.result = text_in(json, "result");
    if (stream.first_stamp == 0) stream.first_stamp = stamp;
    stream.events.push_back(std::move(seen));
  }
}

std::string show(const Call& call, Time start) {
  std::string text = fmt::format("{} {} [{}]", name_of(call.kind), call.lane(), call.who());
  if (call.token != 0) text += fmt::format(" token={}", call.token);
  if (call.kind == CallKind::unlock)
    text += call.success ? " success" : call.permanent ? " for good" : " failure";
  if (call.keep) text += fmt::format(" keep={}ms", to_ms(*call.keep));
  if (!call.result.empty()) text += " result=" + call.result;
  if (call.resource_scope) text += " scope=resource";
  if (call.lease.count() > 0) text += fmt::format(" lease={}ms", to_ms(call.lease));
  if (call.wait.count() > 0) text += fmt::format(" wait={}ms", to_ms(call.wait));
  if (call.monitor) text += " monitor";
  if (call.dereference) text += " dereference";
  text += fmt::format(" at {} ", (call.invoked - start).count());
  if (!call.has_returned()) return text + "(no answer)";
  text += fmt::format("-> {} {} {}", (call.returned - start).count(), call.status, call.state);
  if (call.told_token != 0) text += fmt::format(" token={}", call.told_token);
  if (call.holder_token != 0) text += fmt::format(" holder={}", call.holder_token);
  if (call.told_keep) text += fmt::format(" keep={}ms", to_ms(*call.told_keep));
  if (!call.completed_by.empty()) text += " by " + call.completed_by;
  if (!call.told_result.empty()) text += " result=" + call.told_result;
  if (call.done) text += call.already ? " done already" : " done";
  return text;
}

}  // namespace turnstile::sim
