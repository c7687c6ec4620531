// The words of docs/semantics.md section 1 as types. Everything in the engine's interface is made of these.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/id.h"
#include "base/time.h"

namespace turnstile {

// The fencing number of a hold. Grows with every grant on the server and is never used twice.
enum class Token : uint64_t { none = 0 };

// An open long poll, and an open connection that shows that a requester lives. The engine only compares them;
// the server knows what they stand for.
enum class PollId : uint64_t { none = 0 };
enum class BondId : uint64_t { none = 0 };

enum class Scope : uint8_t { operation, resource };

// One queue and at most one hold: an operation on a resource.
struct LaneName {
  OperationName operation;
  ResourceId resource;
  friend bool operator==(const LaneName&, const LaneName&) = default;
};

// Who asks. Without a request id the node itself is the requester, as in the seeds.
struct Requester {
  NodeId node;
  RequestId request;
  friend bool operator==(const Requester&, const Requester&) = default;
};

struct Progress {
  uint64_t done = 0;
  uint64_t total = 0;
  friend bool operator==(const Progress&, const Progress&) = default;
};

// Prefixes of resource ids that somebody is confined to; none: he is not.
using Prefixes = std::span<const std::string>;
inline bool is_within(Prefixes prefixes, std::string_view resource) {
  for (const std::string& prefix : prefixes)
    if (resource.starts_with(prefix)) return true;
  return prefixes.empty();
}

// How a wait ended other than by a grant.
enum class Ending : uint8_t { skipped, refused, failed };

}  // namespace turnstile
