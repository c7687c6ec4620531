// The one way a command reaches a resource; private to engine*.cc.
#pragma once

#include <array>

#include "engine/engine.h"
#include "engine/rules.h"
#include "engine/shard.h"

namespace turnstile {

// The resource is pinned; unpins it. What every call comes down to: lock, apply the rules, hand over the
// effects.
template <class Step>
auto Engine::run_step(Shard& shard, Resource& resource, Time now, Effects& out, Step step) {
  struct Unpin {
    Shard& shard;
    Resource& resource;
    ~Unpin() { shard.unpin(resource); }
  } unpin{shard, resource};
  const Locked lock(resource.mutex);
  Rules rules(settings_, counters_, sink_->wants_records(), resource, now, out);
  auto answer = step(rules);
  rules.finish();
  out.at = now;
  const bool changed = !out.records.empty() || !out.events.empty();
  out.sequence = changed ? sink_->commit(out) : sink_->latest();
  shard.note(resource, resource.empty(), rules.next_deadline());
  return answer;
}

// Calls visit(shard, resource) for up to `most` resources, some of which may not match `prefix` and are only
// counted. They are pinned, and `visit` unpins them. True: that was all of them. The table's lock is taken
// for a few resources at a time.
template <class Visit>
bool Engine::walk_some(WalkPlace& place, size_t most, std::string_view prefix, Visit visit) {
  std::array<Resource*, 64> pinned;
  while (place.shard < shards_.size()) {
    if (most == 0) return false;
    Shard& shard = *shards_[place.shard];
    const Shard::Some some =
        shard.pin_some(place.before, std::span(pinned).first(std::min(most, pinned.size())), prefix);
    for (size_t i = 0; i < some.pinned; ++i) visit(shard, *pinned[i]);
    most -= some.looked_at;
    if (place.before == 0) place = {place.shard + 1, SIZE_MAX};
  }
  return true;
}

template <class Visit>
void Engine::walk_all(Visit visit) {
  WalkPlace place;
  walk_some(place, SIZE_MAX, {}, visit);
}

}  // namespace turnstile
