// The engine's walks over all resources: recovery, snapshots, releasing a node. Each looks at one resource at
// a time, so that everybody else goes on meanwhile. Listing is in list_walk.cc.
#include <string>

#include "engine/engine_step.h"

namespace turnstile {

bool Engine::release_node_some(ReleaseNodeWalk& walk, size_t most_resources, Time now, Effects& out,
                               const std::function<void(Effects&)>& after_step) {
  if (!settings_.server_keeps_references) {
    walk.answer_.refusal = Refusal::references_off;
    return true;
  }
  const NodeId node(walk.node_);
  const bool finished = walk_some(walk.place_, most_resources, {}, [&](Shard& shard, Resource& resource) {
    bool uses = is_within(walk.within_, resource.id);
    if (uses) {
      Effects none;
      const Locked lock(resource.mutex);
      uses = Rules(settings_, counters_, false, resource, now, none).has_reference(node);
    }
    if (!uses) return shard.unpin(resource);  // nearly all of them: not worth a step
    out.clear();
    const ReferencesAnswer one =
        run_step(shard, resource, now, out, [&](Rules& rules) { return rules.release_reference(node); });
    walk.answer_.count += one.changed;
    after_step(out);
  });
  walk.answer_.changed = walk.answer_.count > 0;
  walk.sequence_ = sink_->latest();
  return finished;
}

void Engine::load(const Record& record) {
  if (record.kind == RecordKind::token_mark)
    return counters_.raise_tokens(planted(Plant::tokens_begin_anew) ? 0 : record.number);
  if (record.kind == RecordKind::hold_set || record.kind == RecordKind::released_set)
    counters_.raise_tokens(record.number);
  if (record.kind == RecordKind::waiter_set && !planted(Plant::tickets_begin_anew))
    counters_.raise_tickets(record.number);
  const bool has_lane = !record.lane.operation.empty();
  const OperationUse operation =
      has_lane ? operations_.use_while_loading(record.lane.operation.text) : OperationUse();
  Shard& shard = shard_of(record.lane.resource);
  Resource& resource = shard.pin_or_create(record.lane.resource);
  {
    Effects none;
    const Locked lock(resource.mutex);
    Rules rules(settings_, counters_, false, resource, Time{}, none);
    rules.load(record, operation.get(), last_texts_);
  }
  shard.unpin(resource);
}

void Engine::tidy_loaded(Time latest) {
  walk_all([&](Shard& shard, Resource& resource) {
    {
      Effects none;
      const Locked lock(resource.mutex);
      Rules(settings_, counters_, false, resource, latest, none).tidy_loaded();
      shard.note(resource, resource.empty(), kNever);
    }
    shard.unpin(resource);
  });
  operations_.forget_unused();
}

Result<Engine::Loaded> Engine::finish_load(Time now, Effects& out,
                                           const std::function<void(Effects&)>& after_step) {
  walk_all([&](Shard& shard, Resource& resource) {
    out.clear();
    run_step(shard, resource, now, out, [](Rules& rules) {
      rules.finish_load();
      return true;
    });
    after_step(out);
  });
  last_texts_ = {};
  operations_.forget_unused();
  if (operations_.size() > Operations::kMostNames)
    return fail("the store holds locks of " + std::to_string(operations_.size()) +
                " operations, and a server can have " + std::to_string(Operations::kMostNames) +
                ": start it with the settings and the version that wrote it, and let some of them end");
  Loaded loaded;
  loaded.resources = resource_count();
  for_each_lane([&](std::string_view, bool held, size_t waiters) {
    loaded.holds += held;
    loaded.waiters += waiters;
  });
  return loaded;
}

void Engine::restart_times(Time now) {
  Effects none;
  walk_all([&](Shard& shard, Resource& resource) {
    none.clear();
    run_step(shard, resource, now, none, [](Rules& rules) {
      rules.restart_times();
      return true;
    });
  });
}

void Engine::dump(const std::function<void(const Record&)>& write) {
  Record mark;
  mark.kind = RecordKind::token_mark;
  mark.number = counters_.tokens.load();
  write(mark);
  Effects scratch;
  walk_all([&](Shard& shard, Resource& resource) {
    scratch.clear();
    {
      const Locked lock(resource.mutex);
      Rules(settings_, counters_, false, resource, Time{}, scratch).dump();
    }
    for (const Record& record : scratch.records) write(record);  // it may go to a disk: not under the lock
    shard.unpin(resource);
  });
}

void Engine::for_each_lane(const std::function<void(std::string_view, bool, size_t)>& visit) {
  walk_all([&](Shard& shard, Resource& resource) {
    {
      const Locked lock(resource.mutex);
      for (const Lane* lane = resource.lanes.get(); lane != nullptr; lane = lane->next.get())
        visit(lane->operation->metric_name(), lane->hold.held(), lane->queue ? lane->queue->size() : 0);
    }
    shard.unpin(resource);
  });
}

}  // namespace turnstile
