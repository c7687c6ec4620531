// Walks over all resources that go on in slices, so that nobody waits for the whole of one: the caller asks
// for a slice, does other work, asks for the next.
//
// Nothing is pinned or locked between two slices, and no list of a million pointers is made. What is there
// during the whole walk is seen; what comes or goes meanwhile may be seen or not (S33).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/answer.h"
#include "engine/command.h"
#include "engine/effects.h"

namespace turnstile {

// Where a walk is: shard by shard, in each from the last resource to the first (see Shard::pin_some).
struct WalkPlace {
  size_t shard = 0;
  size_t before = SIZE_MAX;  // what stands there and behind it has been seen
};

// One page of GET /locks in the making: the lowest lanes behind the cursor that match, by name alone. Only at
// the end the lanes are looked up again and their status is read.
//
// Threads: one at a time. Texts: the walk has its own, so that its command need not live as long.
class ListWalk {
 public:
  explicit ListWalk(const ListCommand& command);

  // When Engine::list_some() has said that it is finished. Lives as long as the walk.
  const ListAnswer& answer() const { return answer_; }
  // Behind which the answer may leave.
  uint64_t sequence() const { return effects_.sequence; }

 private:
  friend class Engine;
  using Key = std::pair<std::string, std::string>;  // resource, operation

  void consider(std::string_view resource, std::string_view operation);

  const std::string prefix_, operation_;
  const Key after_;
  const std::optional<LaneState> state_;
  const size_t limit_;
  WalkPlace place_;
  std::set<Key> lowest_;  // at most limit_
  bool dropped_ = false;  // there are more, all of them behind the last of lowest_
  Effects effects_;
  ListAnswer answer_;
};

// POST /refs/release_node, a step for each resource that the node uses.
class ReleaseNodeWalk {
 public:
  explicit ReleaseNodeWalk(NodeId node) : node_(node.text) {}

  // When Engine::release_node_some() has said that it is finished.
  const ReferencesAnswer& answer() const { return answer_; }
  uint64_t sequence() const { return sequence_; }

 private:
  friend class Engine;

  const std::string node_;
  WalkPlace place_;
  ReferencesAnswer answer_;
  uint64_t sequence_ = 0;
};

}  // namespace turnstile
