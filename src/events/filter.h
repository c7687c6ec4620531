// Which events a stream wants: those of one lane, or everything, perhaps narrowed. A file of its own because
// the log (for a resume), the subscriptions and the server's handlers all speak of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace turnstile {

// Owns its texts. Two different pairs (operation, resource) are never the same lane, whatever characters they
// hold.
struct Filter {
  enum class Kind : uint8_t { lane, everything };

  Kind kind = Kind::everything;
  std::string operation;                 // everything: empty means all
  std::string resource;                  // everything: a prefix of the resource id
  std::vector<std::string> within = {};  // everything: the prefixes that its reader may see; none: all

  static Filter lane(const LaneName& name) {
    return {Kind::lane, std::string(name.operation.text), std::string(name.resource.text), {}};
  }
  static Filter everything(std::string_view prefix = {}, OperationName operation = {}, Prefixes within = {}) {
    return {
        Kind::everything, std::string(operation.text), std::string(prefix), {within.begin(), within.end()}};
  }

  bool matches(const LaneName& name) const {
    if (kind == Kind::lane) return name.resource.text == resource && name.operation.text == operation;
    return name.resource.text.starts_with(resource) &&
           (operation.empty() || name.operation.text == operation) && is_within(within, name.resource.text);
  }
};

}  // namespace turnstile
