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
#include <tuple>
#include <utility>
#include <vector>

#include "engine/answer.h"
#include "engine/command.h"
#include "engine/effects.h"

namespace turnstile {

// Where a walk is: shard by shard, in each from the last resource to the first (see Shard::pin_some).
struct WalkPlace {
  size_t shard = 0;
  size_t before = SIZE_MAX;  // what stands there and behind it has been seen
};

// One page of GET /locks in the making: the first lanes behind the cursor that match, by name alone or by
// what they were when they were seen (S57). Only at the end the lanes are looked up again and their status is
// read.
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
  // What the order asks for (0 in that of names), resource, operation.
  using Key = std::tuple<uint64_t, std::string, std::string>;

  void consider(uint64_t rank, std::string_view resource, std::string_view operation);
  // By its name alone, which never changes, most of a long walk's resources are out of the question.
  bool may_have(std::string_view resource) const;

  const std::string prefix_, contains_, operation_, node_;
  const std::vector<std::string> within_;
  const std::pair<std::string, std::string> after_;  // resource, operation
  const ListCommand wanted_;                         // the rest of it; its texts are gone
  WalkPlace place_;
  std::set<Key> lowest_;  // at most wanted_.limit
  bool dropped_ = false;  // there are more, all of them behind the last of lowest_
  Effects effects_;
  ListAnswer answer_;
  uint64_t matched_ = 0;
};

// POST /refs/release_node, a step for each resource that the node uses.
class ReleaseNodeWalk {
 public:
  // `within`: what the caller may touch; references of other resources stay.
  explicit ReleaseNodeWalk(NodeId node, Prefixes within = {})
      : node_(node.text), within_(within.begin(), within.end()) {}

  // When Engine::release_node_some() has said that it is finished.
  const ReferencesAnswer& answer() const { return answer_; }
  uint64_t sequence() const { return sequence_; }

 private:
  friend class Engine;

  const std::string node_;
  const std::vector<std::string> within_;
  WalkPlace place_;
  ReferencesAnswer answer_;
  uint64_t sequence_ = 0;
};

}  // namespace turnstile
