#include "client/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace turnstile::client {
namespace {

constexpr size_t kBatchCalls = 1000;
constexpr size_t kBatchBytes = 1 << 20;
constexpr size_t kLongestError = 4'096;  // that the server takes
constexpr char kHex[] = "0123456789abcdef";

bool needs_escape(char c) { return uint8_t(c) < 0x20 || c == 0x7f || c == '"' || c == '\\'; }

// Names rarely need it, so what lies between is copied as a whole: a call's body is built for every call.
void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t plain = size_t(std::ranges::find_if(text, needs_escape) - text.begin());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto byte = uint8_t(text.front());
    out += '\\';
    if (byte == '"' || byte == '\\') {
      out += char(byte);
    } else {
      out.append("u00") += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
    text.remove_prefix(1);
  }
  out += '"';
}

JsonObject begin(const Requester& who, std::string_view call) {
  JsonObject object(who.operation.size() + who.resource.size() + who.node_id.size() + who.request_id.size());
  object.text_if("call", call)
      .text("type", who.operation)
      .text("resource_id", who.resource)
      .text("node_id", who.node_id)
      .text_if("request_id", who.request_id);
  return object;
}

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

void JsonObject::name(std::string_view name) {
  out_.append(out_.size() > 1 ? ",\"" : "\"").append(name).append("\":");
}

JsonObject& JsonObject::text(std::string_view field, std::string_view value) {
  name(field);
  append_json_text(out_, value);
  return *this;
}

JsonObject& JsonObject::number(std::string_view field, uint64_t value) {
  name(field);
  const fmt::format_int digits(value);
  out_.append(digits.data(), digits.size());
  return *this;
}

JsonObject& JsonObject::boolean(std::string_view field, bool value) {
  name(field);
  out_.append(value ? "true" : "false");
  return *this;
}

std::string JsonObject::take() {
  out_ += '}';
  return std::move(out_);
}

Target& Target::with(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  out_ += next_;
  next_ = '&';
  out_.append(name) += '=';
  for (const char c : value) {
    if (unreserved(c)) {
      out_ += c;
    } else {
      out_ += '%';
      out_ += kHex[uint8_t(c) >> 4];
      out_ += kHex[uint8_t(c) & 15];
    }
  }
  return *this;
}

std::optional<std::string> fault_of_name(std::string_view resource) {
  if (is_utf8(resource)) return std::nullopt;
  return fmt::format("\"{}\" is no UTF-8", to_utf8(resource));
}

std::optional<std::string> fault_of(const LockRequest& request) {
  if (request.lease.count() < 0) return "a lease must not be below 0";
  for (const std::string* text :
       {&request.operation, &request.resource, &request.node_id, &request.request_id, &request.info}) {
    if (std::optional<std::string> fault = fault_of_name(*text)) return fault;
  }
  return std::nullopt;
}

std::string lock_body(const LockBody& lock, std::string_view call) {
  JsonObject object = begin(lock.who, call);
  const LockRequest& request = lock.request;
  if (request.scope) object.text_if("scope", *request.scope);
  if (lock.wait.count() > 0) object.number("wait_ms", uint64_t(lock.wait.count()));
  if (request.lease.count() > 0) object.number("lease_ms", uint64_t(request.lease.count()));
  if (request.monitor) object.boolean("monitor", true);
  if (request.dereference) object.boolean("dereference", true);
  object.text_if("info", request.info);
  return object.take();
}

std::string unlock_body(const Requester& who, uint64_t token, const WorkResult& result,
                        std::string_view call) {
  JsonObject object = begin(who, call);
  if (token != 0) object.number("token", token);
  object.boolean("success", result.success);  // always: its absence would be read from the error text (D6)
  object.text_if("error", to_utf8(result.error, kLongestError));  // any text will do to say why
  if (result.permanent) object.boolean("permanent", true);
  if (result.success) {
    object.text_if("result", result.result);
    if (result.keep) object.number("keep_ms", uint64_t(std::max<int64_t>(0, result.keep->count())));
  }
  return object.take();
}

std::string renew_body(const Requester& who, uint64_t token, Milliseconds lease,
                       const std::optional<Progress>& progress, std::string_view call) {
  JsonObject object = begin(who, call);
  object.number("token", token);
  if (lease.count() > 0) object.number("lease_ms", uint64_t(lease.count()));
  if (progress) object.number("done", progress->done).number("total", progress->total);
  return object.take();
}

std::string cancel_body(const Requester& who, std::string_view call) { return begin(who, call).take(); }

std::string reference_body(std::string_view resource, std::string_view node, std::string_view call) {
  return JsonObject(call.size() + resource.size() + node.size())
      .text_if("call", call)
      .text("resource_id", resource)
      .text("node_id", node)
      .take();
}

void BatchBodies::add(std::string_view element) {
  constexpr std::string_view kBegin = R"({"requests":[)";
  if (bodies_.empty() || bodies_.back().count == kBatchCalls ||
      bodies_.back().text.size() + element.size() + 3 > kBatchBytes) {
    if (!bodies_.empty()) bodies_.back().text += "]}";
    bodies_.emplace_back(Body{.text = std::string(kBegin), .count = 0});
  }
  Body& body = bodies_.back();
  if (body.count++ > 0) body.text += ',';
  body.text += element;
}

std::vector<BatchBodies::Body> BatchBodies::take() {
  if (!bodies_.empty()) bodies_.back().text += "]}";
  return std::move(bodies_);
}

}  // namespace turnstile::client
