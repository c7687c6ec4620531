// GET /locks in slices: which lanes belong on the page is found by walking over all resources; what the page
// says of them is read at the end.
#include "engine/engine_step.h"

namespace turnstile {
namespace {

// A page ends early when its texts have become this long: a thousand lanes may have a hundred waiters each,
// with words of their own.
constexpr size_t kMostPageBytes = 1 << 20;

size_t texts_in(const StatusAnswer& status) {
  size_t bytes = status.lane.resource.text.size() + status.error.size();
  if (status.holder) bytes += status.holder->info.size() + status.holder->who.node.text.size();
  if (status.completion) bytes += status.completion->error.size() + 2 * status.completion->result.size();
  for (const QueueView& waiter : status.queue)
    bytes += waiter.who.node.text.size() + waiter.who.request.text.size() + waiter.info.size();
  for (std::string_view node : status.waiters.nodes) bytes += node.size();
  for (std::string_view node : status.references.nodes) bytes += node.size();
  return bytes;
}

}  // namespace

ListWalk::ListWalk(const ListCommand& command)
    : prefix_(command.prefix),
      operation_(command.operation.text),
      after_(command.after.resource.text, command.after.operation.text),
      state_(command.state),
      limit_(command.limit) {}

// A lane that is listed. May come twice.
void ListWalk::consider(std::string_view resource, std::string_view operation) {
  if (!operation_.empty() && operation != operation_) return;
  using View = std::pair<std::string_view, std::string_view>;
  const View key(resource, operation);
  if (!after_.first.empty() && key <= View(after_)) return;
  if (lowest_.size() < limit_ || key < View(*lowest_.rbegin()))
    lowest_.emplace(resource, operation);
  else if (key > View(*lowest_.rbegin()))
    dropped_ = true;
  if (lowest_.size() <= limit_) return;
  lowest_.erase(std::prev(lowest_.end()));
  dropped_ = true;
}

bool Engine::list_some(ListWalk& walk, size_t most_resources, Time now) {
  const bool finished =
      walk_some(walk.place_, most_resources, walk.prefix_, [&](Shard& shard, Resource& resource) {
        look(resource, walk, now);
        shard.unpin(resource);
      });
  if (finished) read_page(walk, now);
  return finished;
}

void Engine::look(Resource& resource, ListWalk& walk, Time now) {
  // By its name alone, which never changes, most of a long walk's resources are out of the question.
  const std::string_view id = resource.id;
  if (id < walk.after_.first) return;
  const bool full = walk.lowest_.size() >= walk.limit_;
  if (full && walk.dropped_ && id > walk.lowest_.rbegin()->first) return;
  const Locked lock(resource.mutex);
  const Rules rules(settings_, counters_, false, resource, now, walk.effects_);
  for (const Lane* lane = resource.lanes.get(); lane != nullptr; lane = lane->next.get()) {
    if (!rules.is_listed(*lane, walk.state_)) continue;
    walk.consider(id, lane->rules().name);
  }
}

// What has changed since it was seen, and no longer matches, is left out: the page is shorter then.
void Engine::read_page(ListWalk& walk, Time now) {
  ListAnswer& answer = walk.answer_;
  answer.more = walk.dropped_;
  size_t bytes = 0;
  for (auto key = walk.lowest_.begin(); key != walk.lowest_.end(); ++key) {
    if (bytes > kMostPageBytes) {
      answer.more = true;
      break;
    }
    answer.next = {OperationName(key->second), ResourceId(key->first)};
    Shard& shard = shard_of(ResourceId(key->first));
    Resource* resource = shard.pin(ResourceId(key->first));
    if (resource == nullptr) continue;
    {
      const Locked lock(resource->mutex);
      Rules rules(settings_, counters_, false, *resource, now, walk.effects_);
      const Lane* lane = rules.find_lane(OperationName(key->second));
      if (lane != nullptr && rules.is_listed(*lane, walk.state_)) {
        answer.page.push_back(rules.lane_status(*lane));
        bytes += texts_in(answer.page.back());
      }
    }
    shard.unpin(*resource);
  }
  walk.effects_.sequence = sink_.latest();
}

}  // namespace turnstile
