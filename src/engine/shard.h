// One of the tables that resources are spread over, and the deadlines of what is in it.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <memory>
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
  // Pins all whose id begins with `prefix`.
  std::vector<Resource*> pin_all(std::string_view prefix = {});
  void unpin(Resource& resource);

  // While the resource's mutex is held: what unpin() is to do, and when expire is to look at it.
  void note(Resource& resource, bool empty, Time deadline);

  // Takes out and pins those that are due, at most `limit`.
  std::vector<Resource*> pin_due(Time now, size_t limit);
  Time next_deadline() const;
  size_t size() const;

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

  mutable Mutex heap_mutex_;
  DeadlineHeap<Resource, &Resource::place> heap_ TS_GUARDED_BY(heap_mutex_);
};

}  // namespace turnstile
