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
      contains_(command.contains),
      operation_(command.operation.text),
      node_(command.node.text),
      within_(command.within.begin(), command.within.end()),
      after_(command.after.resource.text, command.after.operation.text),
      wanted_([&] {
        ListCommand rest = command;
        rest.prefix = rest.contains = {};
        rest.operation = {};
        rest.after = {};
        rest.within = {};
        rest.node = NodeId(node_);
        return rest;
      }()) {}

bool ListWalk::may_have(std::string_view resource) const {
  if (!contains_.empty() && resource.find(contains_) == resource.npos) return false;
  if (!is_within(within_, resource)) return false;
  if (wanted_.count || wanted_.order != ListOrder::name) return true;
  if (resource < after_.first) return false;
  const bool full = lowest_.size() >= wanted_.limit;
  return !full || !dropped_ || resource <= std::get<1>(*lowest_.rbegin());
}

// A lane that is listed. May come twice.
void ListWalk::consider(uint64_t rank, std::string_view resource, std::string_view operation) {
  ++matched_;
  using Name = std::pair<std::string_view, std::string_view>;
  if (!after_.first.empty() && Name(resource, operation) <= Name(after_)) return;
  using View = std::tuple<uint64_t, std::string_view, std::string_view>;
  const View key(rank, resource, operation);
  if (lowest_.size() < wanted_.limit || key < View(*lowest_.rbegin()))
    lowest_.emplace(rank, resource, operation);
  else if (key > View(*lowest_.rbegin()))
    dropped_ = true;
  if (lowest_.size() <= wanted_.limit) return;
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
  const std::string_view id = resource.id;
  if (!walk.may_have(id)) return;
  const Locked lock(resource.mutex);
  const Rules rules(settings_, counters_, false, resource, now, walk.effects_);
  for (const Lane* lane = resource.lanes.get(); lane != nullptr; lane = lane->next.get()) {
    const std::string_view operation = lane->rules().name;
    if (!walk.operation_.empty() && operation != walk.operation_) continue;
    if (!rules.is_listed(*lane, walk.wanted_)) continue;
    walk.consider(rules.rank_of(*lane, walk.wanted_.order), id, operation);
  }
}

// What has changed since it was seen, and no longer matches, is left out: the page is shorter then.
void Engine::read_page(ListWalk& walk, Time now) {
  ListAnswer& answer = walk.answer_;
  answer.more = walk.dropped_;
  if (walk.wanted_.count) answer.matched = walk.matched_;
  size_t bytes = 0;
  for (const auto& [rank, id, operation] : walk.lowest_) {
    if (bytes > kMostPageBytes) {
      answer.more = true;
      break;
    }
    answer.next = {OperationName(operation), ResourceId(id)};
    Shard& shard = shard_of(ResourceId(id));
    Resource* resource = shard.pin(ResourceId(id));
    if (resource == nullptr) continue;
    {
      const Locked lock(resource->mutex);
      Rules rules(settings_, counters_, false, *resource, now, walk.effects_);
      const Lane* lane = rules.find_lane(OperationName(operation));
      if (lane != nullptr && rules.is_listed(*lane, walk.wanted_)) {
        answer.page.push_back(rules.lane_status(*lane, walk.wanted_.names));
        bytes += texts_in(answer.page.back());
      }
    }
    shard.unpin(*resource);
  }
  // Where a lane stands in another order changes all the time: there is no place to go on from.
  if (walk.wanted_.order != ListOrder::name) answer.more = false;
  walk.effects_.sequence = sink_->latest();
}

}  // namespace turnstile
