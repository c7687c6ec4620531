// Commands taken apart into named fields again, to be written anew as JSON or as a query.
//
// A file of its own because both ways into the API must give commands that survive this: read, written, read
// again.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <variant>

#include "api/byte_scan.h"
#include "api/command.h"
#include "api/json_append.h"
#include "support.h"

namespace turnstile::fuzz {

bool is_utf8(std::string_view text);
bool is_json_object(std::string_view text);

// Values as they stand in JSON, without quotes where they are no texts.
struct CommandFields {
  std::map<std::string, std::string> texts, others;

  void id(const std::string& name, std::string_view value, size_t longest, bool required) {
    TS_CHECK(!required || !value.empty(), "a field that is required is there");
    TS_CHECK(!has_control_character(value), "an id has no control characters");
    text(name, value, longest);
  }
  void text(const std::string& name, std::string_view value, size_t longest) {
    TS_CHECK(value.size() <= longest, "a text is within its limit");
    TS_CHECK(is_utf8(value), "a text is valid UTF-8");
    if (!value.empty()) texts[name] = value;
  }
  void number(const std::string& name, uint64_t value) {
    TS_CHECK(value <= kMaxJsonInteger, "a number is one that every reader of JSON can hold");
    others[name] = fmt::to_string(value);
  }
  void boolean(const std::string& name, bool value) { others[name] = value ? "true" : "false"; }
  void lane(const LaneName& name, const ApiLimits& limits = {}) {
    id("type", name.operation.text, limits.type, true);
    id("resource_id", name.resource.text, limits.resource_id, true);
  }
  void requester(const Requester& who, bool required, const ApiLimits& limits = {}) {
    id("node_id", who.node.text, limits.node_id, required);
    id("request_id", who.request.text, limits.request_id, false);
    TS_CHECK(!who.node.empty() || who.request.empty(), "a request id names nobody without a node");
  }
  void lease(const std::optional<Duration>& lease, const ApiLimits& limits = {}) {
    if (!lease) return;
    TS_CHECK(*lease >= limits.lease_min && *lease <= limits.lease_max, "a lease is within its limits");
    number("lease_ms", uint64_t(to_ms(*lease)));
  }

  std::string as_json() const {
    std::string out;
    for (const auto& [name, value] : texts) {
      out += out.empty() ? "{" : ",";
      append_json_text(out, name);
      out += ':';
      append_json_text(out, value);
    }
    for (const auto& [name, value] : others)
      out += fmt::format("{}\"{}\":{}", out.empty() ? "{" : ",", name, value);
    return out.empty() ? "{}" : out + "}";
  }
  std::string as_query() const {
    std::string out;
    const auto add = [&](const std::string& name, const std::string& value) {
      out += (out.empty() ? "" : "&") + name + "=";
      for (const char byte : value) out += fmt::format("%{:02x}", uint8_t(byte));
    };
    for (const auto& [name, value] : texts) add(name, value);
    for (const auto& [name, value] : others) add(name, value);
    return out;
  }
};

CommandFields fields_of(const Command& command);

}  // namespace turnstile::fuzz
