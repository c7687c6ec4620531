// The engine's walks over all resources: listing, recovery, snapshots. Each looks at one resource at a time,
// so that everybody else goes on meanwhile.
#include <algorithm>

#include "engine/engine_step.h"

namespace turnstile {
namespace {

struct Pinned {
  Resource* resource;
  Shard* shard;
  // For a heap whose front is the smallest id.
  friend bool operator<(const Pinned& a, const Pinned& b) {
    return a.resource->id.view() > b.resource->id.view();
  }
};

bool matches(const ListCommand& command, const Lane& lane, std::string_view resource) {
  if (!command.operation.empty() && lane.rules().name != command.operation.text) return false;
  const bool same_resource = resource == command.after.resource.text;
  return !same_resource || std::string_view(lane.rules().name) > command.after.operation.text;
}

// Of what a page lists besides its lanes: queues, waiters and references can be long.
constexpr size_t kMostNamesOnAPage = 20'000;

size_t names_in(const StatusAnswer& status) {
  return status.queue.size() + status.waiters.nodes.size() + status.references.nodes.size();
}

}  // namespace

ListAnswer Engine::list(const ListCommand& command, Time now, Effects& out) {
  std::vector<Pinned> pinned;
  for (const auto& shard : shards_) {
    for (Resource* resource : shard->pin_all(command.prefix)) {
      if (resource->id.view() < command.after.resource.text)
        shard->unpin(*resource);
      else
        pinned.push_back({resource, shard.get()});
    }
  }
  // A page needs few of many: a heap gives the smallest ids without sorting them all.
  std::make_heap(pinned.begin(), pinned.end());
  ListAnswer answer;
  size_t names = 0;
  while (!pinned.empty() && !answer.more) {
    std::pop_heap(pinned.begin(), pinned.end());
    const Pinned next = pinned.back();
    pinned.pop_back();
    {
      const Locked lock(next.resource->mutex);
      Rules rules(settings_, counters_, false, *next.resource, now, out);
      std::vector<const Lane*> lanes;
      for (const Lane* lane = next.resource->lanes.get(); lane != nullptr; lane = lane->next.get())
        if (matches(command, *lane, next.resource->id)) lanes.push_back(lane);
      std::sort(lanes.begin(), lanes.end(),
                [](auto* a, auto* b) { return a->rules().name < b->rules().name; });
      for (const Lane* lane : lanes) {
        StatusAnswer status = rules.lane_status(*lane);
        const bool wanted = command.state ? status.state == *command.state : status.state != LaneState::idle;
        if (!wanted || answer.more) continue;
        answer.more = answer.page.size() >= command.limit || names > kMostNamesOnAPage;
        if (answer.more) continue;
        names += names_in(status);
        answer.page.push_back(std::move(status));
      }
    }
    next.shard->unpin(*next.resource);
  }
  for (const Pinned& rest : pinned) rest.shard->unpin(*rest.resource);
  out.sequence = sink_.latest();
  return answer;
}

void Engine::load(const Record& record) {
  if (record.kind == RecordKind::token_mark) return counters_.raise_tokens(record.number);
  if (record.kind == RecordKind::hold_set || record.kind == RecordKind::released_set)
    counters_.raise_tokens(record.number);
  if (record.kind == RecordKind::waiter_set) counters_.raise_tickets(record.number);
  const bool has_lane = !record.lane.operation.empty();
  const Operation* operation = has_lane ? operations_.find_or_add(record.lane.operation.text) : nullptr;
  Shard& shard = shard_of(record.lane.resource);
  Resource& resource = shard.pin_or_create(record.lane.resource);
  {
    Effects none;
    const Locked lock(resource.mutex);
    Rules rules(settings_, counters_, false, resource, Time{}, none);
    rules.load(record, operation);
  }
  shard.unpin(resource);
}

Engine::Loaded Engine::finish_load(Time now, Effects& out, const std::function<void(Effects&)>& after_step) {
  for (const auto& shard : shards_) {
    for (Resource* resource : shard->pin_all()) {
      out.clear();
      run_step(*shard, *resource, now, out, [](Rules& rules) {
        rules.finish_load();
        return true;
      });
      after_step(out);
    }
  }
  Loaded loaded;
  loaded.resources = resource_count();
  for_each_lane([&](std::string_view, bool held, size_t waiters) {
    loaded.holds += held;
    loaded.waiters += waiters;
  });
  return loaded;
}

void Engine::dump(const std::function<void(const Record&)>& write) {
  Record mark;
  mark.kind = RecordKind::token_mark;
  mark.number = counters_.tokens.load();
  write(mark);
  Effects scratch;
  for (const auto& shard : shards_) {
    for (Resource* resource : shard->pin_all()) {
      scratch.clear();
      {
        const Locked lock(resource->mutex);
        Rules(settings_, counters_, false, *resource, Time{}, scratch).dump();
      }
      for (const Record& record : scratch.records) write(record);  // it may go to a disk: not under the lock
      shard->unpin(*resource);
    }
  }
}

void Engine::for_each_lane(const std::function<void(std::string_view, bool, size_t)>& visit) {
  for (const auto& shard : shards_) {
    for (Resource* resource : shard->pin_all()) {
      {
        const Locked lock(resource->mutex);
        for (const Lane* lane = resource->lanes.get(); lane != nullptr; lane = lane->next.get())
          visit(lane->operation->metric_name(), lane->hold.held(), lane->queue ? lane->queue->size() : 0);
      }
      shard->unpin(*resource);
    }
  }
}

}  // namespace turnstile
