#include "engine/shard.h"

#include <algorithm>

namespace turnstile {

Shard::~Shard() {
  for (Resource* resource : all_) delete resource;
}

Resource* Shard::pin(ResourceId id) {
  const SharedLocked lock(mutex_);
  const auto found = table_.find(id.text);
  if (found == table_.end()) return nullptr;
  (*found)->state.fetch_add(kPin, std::memory_order_acquire);
  return *found;
}

Resource& Shard::pin_or_create(ResourceId id) {
  if (Resource* known = pin(id)) return *known;
  auto made = std::make_unique<Resource>(id.text);
  const Locked lock(mutex_);
  const auto found = table_.find(id.text);
  Resource* resource = found != table_.end() ? *found : made.release();
  if (found == table_.end()) {
    table_.insert(resource);
    resource->slot = uint32_t(all_.size());
    all_.push_back(resource);
    size_.store(all_.size(), std::memory_order_relaxed);
  }
  resource->state.fetch_add(kPin, std::memory_order_acquire);
  return *resource;
}

Shard::Some Shard::pin_some(size_t& before, std::span<Resource*> into, std::string_view prefix) {
  Some some;
  const SharedLocked lock(mutex_);
  before = std::min(before, all_.size());
  for (; before > 0 && some.looked_at < into.size(); ++some.looked_at) {
    Resource* resource = all_[--before];
    if (!prefix.empty() && !resource->id.view().starts_with(prefix)) continue;
    resource->state.fetch_add(kPin, std::memory_order_acquire);
    into[some.pinned++] = resource;
  }
  return some;
}

void Shard::note(Resource& resource, bool empty, Time deadline) {
  if (empty)
    resource.state.fetch_or(kEmptyBit, std::memory_order_relaxed);
  else
    resource.state.fetch_and(~kEmptyBit, std::memory_order_relaxed);
  const Locked lock(heap_mutex_);
  heap_.set(resource, deadline);
}

void Shard::unpin(Resource& resource) {
  // After the exchange it may be gone at any moment, so its id, should it be needed, is taken before.
  uint32_t state = resource.state.load(std::memory_order_relaxed);
  Text id;
  for (;;) {
    const bool last_and_empty = state == (kPin | kEmptyBit);
    if (last_and_empty && id.empty()) id = Text(resource.id.view());
    if (!resource.state.compare_exchange_weak(state, state - kPin, std::memory_order_acq_rel)) continue;
    if (last_and_empty) erase_if_unused(id);
    return;
  }
}

void Shard::erase_if_unused(std::string_view id) {
  std::unique_ptr<Resource> erased;  // freed after the locks
  const Locked lock(mutex_);
  const auto found = table_.find(id);
  if (found == table_.end()) return;
  const Locked heap_lock(heap_mutex_);  // pin_due() pins under it
  if ((*found)->state.load(std::memory_order_acquire) != kEmptyBit) return;
  heap_.erase(**found);
  erased.reset(*found);
  table_.erase(found);
  all_.back()->slot = erased->slot;
  all_[erased->slot] = all_.back();
  all_.pop_back();
  size_.store(all_.size(), std::memory_order_relaxed);
}

std::vector<Resource*> Shard::pin_due(Time now, size_t limit) {
  std::vector<Resource*> due;
  const Locked lock(heap_mutex_);
  while (due.size() < limit) {
    Resource* resource = heap_.take_due(now);
    if (resource == nullptr) break;
    resource->state.fetch_add(kPin, std::memory_order_acquire);
    due.push_back(resource);
  }
  return due;
}

Time Shard::next_deadline() const {
  const Locked lock(heap_mutex_);
  return heap_.next();
}

bool Shard::contains(ResourceId id) const {
  const SharedLocked lock(mutex_);
  return table_.contains(id.text);
}

}  // namespace turnstile
