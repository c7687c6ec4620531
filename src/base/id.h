// Names of things, as views. Each kind of id is a type of its own, so that a node cannot be passed for a
// resource.
#pragma once

#include <compare>
#include <string_view>

namespace turnstile {

template <class Kind>
struct Id {
  std::string_view text;

  constexpr Id() = default;
  constexpr explicit Id(std::string_view from) : text(from) {}
  constexpr bool empty() const { return text.empty(); }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using ResourceId = Id<struct ResourceKind>;
using OperationName = Id<struct OperationKind>;
using NodeId = Id<struct NodeKind>;
using RequestId = Id<struct RequestKind>;

}  // namespace turnstile
