// Who wants which events: an index from an event's lane to its listeners. Apart from the Router because it
// has no locks and no order, only look-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "engine/types.h"
#include "events/filter.h"

namespace turnstile {

// Names a stream; never used twice in a process, so that a delivery that comes late reaches nobody else.
enum class SubscriberId : uint64_t {};

struct Listener {
  SubscriberId subscriber{};
  unsigned loop = 0;
  uint64_t after = 0;  // gets only events with greater ids
  std::shared_ptr<const Filter> filter;
};

// Threads: none of its own; guarded by the Router. Time: add and remove are constant on average; finding
// takes one hash look-up, plus a comparison for each listener to everything. Invariant: places_ says for each
// subscriber where it stands; no list of a lane is empty.
class Subscriptions {
 public:
  // A subscriber that is not there yet (checked).
  void add(Listener listener);
  // False: not there.
  bool remove(SubscriberId subscriber);

  size_t size() const { return places_.size(); }
  size_t lanes() const { return lanes_.size(); }  // that somebody listens to

  // Calls visit(const Listener&) for each that gets the event with this id.
  template <class Visit>
  void for_each_match(uint64_t id, const LaneName& lane, Visit visit) const {
    if (const auto found = lanes_.find(lane); found != lanes_.end()) {
      for (const Listener& listener : found->second) {
        if (listener.after < id) visit(listener);
      }
    }
    for (const Listener& listener : everything_) {
      if (listener.after < id && listener.filter->matches(lane)) visit(listener);
    }
  }

  // Calls visit(const Listener&) for each that may have missed an event up to this id.
  template <class Visit>
  void for_each_before(uint64_t id, Visit visit) const {
    for (const auto& [subscriber, place] : places_) {
      const Listener& listener = (*place.list)[place.index];
      if (listener.after < id) visit(listener);
    }
  }

 private:
  using List = std::vector<Listener>;

  struct OwnedLane {
    std::string operation, resource;
    LaneName view() const { return {OperationName(operation), ResourceId(resource)}; }
  };
  // Transparent, so that an event's lane is looked up without copying its texts.
  struct LaneHash {
    using is_transparent = void;
    size_t operator()(const LaneName& lane) const {
      return xxh3_64(lane.resource.text) * 31 + xxh3_64(lane.operation.text);
    }
    size_t operator()(const OwnedLane& lane) const { return (*this)(lane.view()); }
  };
  struct LaneEqual {
    using is_transparent = void;
    bool operator()(const OwnedLane& a, const OwnedLane& b) const { return a.view() == b.view(); }
    bool operator()(const OwnedLane& a, const LaneName& b) const { return a.view() == b; }
    bool operator()(const LaneName& a, const OwnedLane& b) const { return a == b.view(); }
  };
  struct Place {
    List* list = nullptr;  // everything_ or a value of lanes_, which does not move while it is there
    size_t index = 0;
  };

  std::unordered_map<OwnedLane, List, LaneHash, LaneEqual> lanes_;
  List everything_;
  std::unordered_map<uint64_t, Place> places_;  // by SubscriberId
};

}  // namespace turnstile
