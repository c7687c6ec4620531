// One of the tables that resources are spread over, and the deadlines of what is in it.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_set.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/deadline_heap.h"
#include "base/hash.h"
#include "base/sync.h"
#include "engine/resource.h"

namespace turnstile {

// Finds resources by id and keeps them from vanishing while somebody uses them.
//
// Two levels of lock, as in the seeds: the table's read/write lock is held only to look up, so that 10,000
// waiters ending at once on one resource never hold up the others; the resource's own mutex guards its state.
// A thread pins a resource under the table's lock and unpins it when done. The pin count and the "is empty"
// bit are one number, so that exactly the thread that brings it to (nobody, empty) has it erased; erasing
// looks it up again under the exclusive lock, when nobody can be about to lock its mutex any more (hole X2).
// Lock order: resource mutex before heap mutex; table lock before heap mutex; never a resource mutex under
// the table's.
class Shard {
 public:
  ~Shard();

  Resource* pin(ResourceId id);
  Resource& pin_or_create(ResourceId id);
  // For walks in slices: looks at up to `into.size()` resources before the one at `before`, pins those whose
  // id begins with `prefix`, and moves `before` down, to 0 when nothing is left. The list has no holes: into
  // the place of an erased resource comes the last one. Walking downwards, that one has been seen already, or
  // is still to be seen there: none is missed, some may be seen twice.
  struct Some {
    size_t looked_at = 0, pinned = 0;
  };
  Some pin_some(size_t& before, std::span<Resource*> into, std::string_view prefix = {});
  void unpin(Resource& resource);

  // While the resource's mutex is held: what unpin() is to do, and when expire is to look at it.
  void note(Resource& resource, bool empty, Time deadline);

  // Takes out and pins those that are due, at most `limit`.
  std::vector<Resource*> pin_due(Time now, size_t limit);
  Time next_deadline() const;
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  bool contains(ResourceId id) const;

 private:
  static constexpr uint32_t kEmptyBit = 1, kPin = 2;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view id) const { return size_t(xxh3_64(id)); }
    size_t operator()(const Resource* resource) const { return (*this)(resource->id.view()); }
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const Resource* a, const Resource* b) const { return a == b; }
    bool operator()(std::string_view a, const Resource* b) const { return a == b->id.view(); }
    bool operator()(const Resource* a, std::string_view b) const { return a->id.view() == b; }
  };

  void erase_if_unused(std::string_view id);

  mutable SharedMutex mutex_;
  // Boost's flat set: 10 bytes an entry where std::unordered_set takes 40.
  boost::unordered_flat_set<Resource*, Hash, Same> table_ TS_GUARDED_BY(mutex_);
  std::vector<Resource*> all_ TS_GUARDED_BY(mutex_);  // the same ones, each at its `slot`
  std::atomic<size_t> size_{0};                       // of both, for those who only want to know

  mutable Mutex heap_mutex_;
  DeadlineHeap<Resource, &Resource::place> heap_ TS_GUARDED_BY(heap_mutex_);
};

}  // namespace turnstile
