// How the rules of an operation, and a store in etcd, are written.
#include <fmt/format.h>

#include "server/settings.h"

namespace turnstile {
namespace {

template <class Value>
std::optional<Value> one_of(std::string_view text,
                            std::initializer_list<std::pair<std::string_view, Value>> words) {
  for (const auto& [word, value] : words)
    if (word == text) return value;
  return std::nullopt;
}

Result<void> set_rule(OperationRules& rules, std::string_view key, std::string_view value) {
  bool known = false;
  auto apply = [&](std::string_view name, auto& field, auto words) {
    if (key != name) return;
    if (const auto found = one_of(value, words)) {
      field = *found;
      known = true;
    }
  };
  using Shares = std::initializer_list<std::pair<std::string_view, OnSuccess>>;
  using Counts = std::initializer_list<std::pair<std::string_view, OnReferences>>;
  using Guards = std::initializer_list<std::pair<std::string_view, Guard>>;
  using Bools = std::initializer_list<std::pair<std::string_view, bool>>;
  apply("on_success", rules.on_success, Shares{{"share", OnSuccess::share}, {"handoff", OnSuccess::handoff}});
  apply("references", rules.references,
        Counts{{"add", OnReferences::add}, {"keep", OnReferences::keep}, {"clear", OnReferences::clear}});
  apply("guard", rules.guard,
        Guards{{"none", Guard::none}, {"skip", Guard::skip}, {"refuse", Guard::refuse}});
  apply("voids", rules.voids, Bools{{"true", true}, {"false", false}});
  if (known) return {};
  return fail(
      fmt::format("'{}={}' is no rule; write on_success=share|handoff, references=add|keep|clear, "
                  "guard=none|skip|refuse, voids=true|false",
                  key, value));
}

}  // namespace

Result<void> parse_etcd_store(ReplicationSettings& settings, std::string_view store) {
  const bool secure = store.starts_with("etcds://");
  const std::string_view rest = store.substr(secure ? 8 : 7);
  const size_t slash = rest.find('/');
  const std::string_view members = rest.substr(0, slash);
  std::string_view prefix = slash == std::string_view::npos ? "" : rest.substr(slash);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty())
    return fail(fmt::format("'{}' has no prefix; write etcd://HOST:PORT,HOST:PORT/PREFIX", store));
  settings.prefix = std::string(prefix);
  settings.endpoints.clear();
  for (size_t from = 0; from <= members.size();) {
    const size_t to = std::min(members.find(',', from), members.size());
    const std::string_view member = members.substr(from, to - from);
    const size_t colon = member.rfind(':');
    unsigned port = 0;
    if (colon != std::string_view::npos && colon > 0)
      for (const char digit : member.substr(colon + 1))
        port = digit < '0' || digit > '9' ? 99999 : port * 10 + unsigned(digit - '0');
    if (port == 0 || port > 65535)
      return fail(
          fmt::format("'{}' is no member of etcd; write HOST:PORT, with a comma between two", member));
    settings.endpoints.push_back((secure ? "https://" : "http://") + std::string(member));
    from = to + 1;
  }
  return {};
}

Result<OperationRules> parse_operation(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0)
    return fail(fmt::format("'{}' is no operation; write NAME:on_success=share|handoff,…", text));
  OperationRules rules;
  rules.name = std::string(text.substr(0, colon));
  for (std::string_view rest = text.substr(colon + 1); !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    if (Result<void> set = set_rule(rules, item.substr(0, equals), value); !set)
      return fail(set.error().message);
  }
  return rules;
}

}  // namespace turnstile
