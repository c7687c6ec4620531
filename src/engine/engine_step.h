// The one way a command reaches a resource; private to engine*.cc.
#pragma once

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
  Rules rules(settings_, counters_, sink_.wants_records(), resource, now, out);
  auto answer = step(rules);
  rules.finish();
  out.at = now;
  const bool changed = !out.records.empty() || !out.events.empty();
  out.sequence = changed ? sink_.commit(out) : sink_.latest();
  shard.note(resource, resource.empty(), rules.next_deadline());
  return answer;
}

}  // namespace turnstile
