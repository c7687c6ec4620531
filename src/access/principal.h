// Who asks, once that is known: a name, a role, and what of the server it is for.
//
// A file of its own, because everybody who decides or tells something by it needs it and nothing else of this
// folder.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/types.h"

namespace turnstile::access {

// The columns of the table of S52 (docs/semantics.md).
enum class Role : uint8_t { client, read, admin };
std::string_view name_of(Role role);

// A name, or every name that begins so: "node-a", "ci-*".
struct NamePattern {
  std::string text;
  bool is_prefix = false;

  static NamePattern of(std::string_view written) {
    const bool prefix = written.ends_with('*');
    if (prefix) written.remove_suffix(1);
    return {std::string(written), prefix};
  }
  bool matches(std::string_view name) const { return is_prefix ? name.starts_with(text) : name == text; }
  friend bool operator==(const NamePattern&, const NamePattern&) = default;
};

// By what it has shown who it is. With that it can be looked up again when the credentials have changed.
using Digest = std::array<uint8_t, 32>;  // of a secret
struct CertificateName {
  std::string text;
  friend bool operator==(const CertificateName&, const CertificateName&) = default;
};
struct UnixUser {
  uint32_t uid = 0;
  friend bool operator==(const UnixUser&, const UnixUser&) = default;
};
using Proof = std::variant<Digest, CertificateName, UnixUser>;

// Immutable once made, and so shared between threads.
struct Principal {
  std::string name;
  Role role = Role::client;
  std::vector<NamePattern> nodes;      // that a client speaks for
  std::vector<std::string> resources;  // prefixes that it may touch and see; none: all
  Proof proof;

  bool speaks_for(NodeId node) const {
    for (const NamePattern& each : nodes)
      if (each.matches(node.text)) return true;
    return false;
  }
  bool touches(ResourceId resource) const { return is_within(resources, resource.text); }
  friend bool operator==(const Principal&, const Principal&) = default;
};
using PrincipalPtr = std::shared_ptr<const Principal>;

}  // namespace turnstile::access
