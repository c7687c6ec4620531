// What can be seen of a resource: status, subscriptions' first events, and the invariants.
#include <algorithm>

#include "base/check.h"
#include "engine/rules.h"

namespace turnstile {

const Completion* Rules::kept_completion(const Lane* lane) const {
  if (lane == nullptr || !lane->completion) return nullptr;
  const Time until = lane->completion->until;
  if (planted(Plant::completion_outlives_its_time) ? until < now_ : until <= now_) return nullptr;
  return lane->completion.get();
}

const Endings::Entry* Rules::ending_of(const Lane& lane, const Requester& who) const {
  if (!lane.memory || !lane.memory->endings) return nullptr;
  const Endings::Entry* entry = lane.memory->endings->find(who);
  return entry != nullptr && entry->until > now_ ? entry : nullptr;
}

// The nodes waiting anywhere on the resource, oldest first. A resource may have thousands of lanes, so no
// more waiters are looked at than are named, and one of each lane.
NodesView Rules::waiting_nodes(size_t most) {
  struct Next {
    const WaitQueue* queue;
    size_t at;
    const Waiter& waiter() const { return queue->at(at); }
  };
  const auto is_behind = [](const Next& a, const Next& b) { return a.waiter().ticket > b.waiter().ticket; };
  NodesView answer;
  std::vector<Next> next;  // a heap, the oldest first
  for_each_lane([&](Lane& lane) {
    if (!lane.has_waiters()) return;
    answer.count += uint32_t(lane.queue->size());
    next.push_back({lane.queue.get(), 0});
  });
  std::make_heap(next.begin(), next.end(), is_behind);
  const auto names = out_.keep_views(std::min<size_t>(answer.count, most));
  for (std::string_view& name : names) {
    std::pop_heap(next.begin(), next.end(), is_behind);
    Next& oldest = next.back();
    name = out_.keep(oldest.waiter().node);
    if (++oldest.at < oldest.queue->size())
      std::push_heap(next.begin(), next.end(), is_behind);
    else
      next.pop_back();
  }
  answer.nodes = names;
  return answer;
}

std::optional<DoneView> Rules::done_view(const EndedHold& hold) {
  if (hold.node.empty()) return std::nullopt;
  return DoneView{node_of(hold), std::max(now_ - hold.at, Duration(0)), keep(hold.result)};
}

LaneState Rules::state_of(const Lane& lane) const {
  if (lane.hold.held()) return LaneState::held;
  if (lane.has_waiters()) return LaneState::waiting;
  return kept_completion(&lane) != nullptr ? LaneState::completed : LaneState::idle;
}

StatusAnswer Rules::lane_status(const Lane& lane, size_t names) {
  StatusAnswer answer;
  answer.lane = {name_of(lane), ResourceId(out_.keep(resource_.id))};
  if (lane.hold.held()) answer.holder = holder_view(lane);
  if (lane.has_waiters()) {
    answer.queue_length = uint32_t(lane.queue->size());
    const size_t listed = std::min(lane.queue->size(), names);
    for (size_t i = 0; i < listed; ++i) {
      const Waiter& waiter = lane.queue->at(i);
      answer.queue.push_back({keep(waiter.who()), uint32_t(i + 1), waiter.since, out_.keep(waiter.info)});
    }
  }
  if (const Completion* last = kept_completion(&lane)) {
    answer.completion = {node_of(last->hold), last->success, last->permanent,
                         keep(last->error),   last->hold.at, keep(last->hold.result)};
    answer.completed = true;
    answer.success = last->success;
    answer.error = answer.completion->error;
  }
  answer.state = state_of(lane);
  answer.references = reference_names(names);
  answer.waiters = waiting_nodes(names);
  return answer;
}

bool Rules::is_listed(const Lane& lane, const ListCommand& wanted) const {
  const LaneState state = state_of(lane);
  if (wanted.state ? state != *wanted.state : state == LaneState::idle) return false;
  if (wanted.group == LaneGroup::active && !lane.hold.held() && !lane.has_waiters()) return false;
  if (wanted.group == LaneGroup::queued && !lane.has_waiters()) return false;
  if (wanted.node.text.empty()) return true;
  if (lane.hold.held() && lane.hold.who().node == wanted.node) return true;
  // Those behind are not named in answers, either: a hundred thousand names would be looked at under the
  // lock.
  const size_t named = lane.queue ? std::min(lane.queue->size(), kMostNamed) : 0;
  for (size_t i = 0; i < named; ++i)
    if (lane.queue->at(i).who().node == wanted.node) return true;
  return false;
}

uint64_t Rules::rank_of(const Lane& lane, ListOrder order) const {
  switch (order) {
    case ListOrder::queue:
      return UINT64_MAX - (lane.queue ? lane.queue->size() : 0);
    case ListOrder::since:
      return uint64_t((lane.hold.held() ? lane.hold.since : kNever).time_since_epoch().count());
    default:
      return 0;
  }
}

StatusAnswer Rules::status(const StatusCommand& command) {
  StatusAnswer answer;
  Lane* lane = find_lane(command.lane.operation);
  if (lane == nullptr) {
    answer.lane = command.lane;
    answer.references = reference_names();
    answer.waiters = waiting_nodes();
    return answer;
  }
  const bool somebody = !command.who.node.empty();
  if (somebody) tell_named(*lane, command.who);
  const bool holds = somebody && lane->hold.held() && lane->hold.who() == command.who;
  if (holds && !planted(Plant::status_keeps_by_poll)) lane->hold.by_polls = 0;
  if (holds && !lane->hold.claimed()) {  // S14: asking claims
    claim(*lane);
    record_hold(*lane);
  }
  const Endings::Entry* ending = somebody ? ending_of(*lane, command.who) : nullptr;
  Waiter* waiter = somebody && lane->has_waiters() ? lane->queue->find(command.who) : nullptr;
  if (waiter != nullptr) waiter->heard_at = now_;
  const bool told_to_skip =
      ending != nullptr && !holds && waiter == nullptr && ending->how == Ending::skipped;
  if (told_to_skip && lane->rules().references == OnReferences::add)
    insert_reference(command.who.node);  // S17

  answer = lane_status(*lane);
  if (!somebody) return answer;
  answer.acquired = holds;
  if (holds) {
    answer.token = lane->hold.token;
    answer.attempt = lane->hold.attempt;
  }
  if (waiter != nullptr) answer.position = lane->queue->position(*waiter);
  const bool ended = ending != nullptr && !holds && waiter == nullptr;
  answer.completed = ended;
  answer.success = ended && ending->how == Ending::skipped;
  answer.error = ended ? keep(ending->error) : std::string_view();
  answer.done = answer.success ? done_view(ending->hold) : std::nullopt;
  return answer;
}

Event Rules::event_of(EventKind kind, const Lane& lane, const Requester& who) {
  Event event;
  event.kind = kind;
  // Kept, because the resource may be gone when a step that emptied it is looked at.
  event.lane = {name_of(lane), ResourceId(out_.keep(resource_.id))};
  event.who = keep(who);
  event.at = now_;
  return event;
}

// S27: a kept completion, a grant not yet claimed, or how the subscriber's own wait ended.
std::vector<Event> Rules::subscribe(const SubscribeCommand& command, const Operation* operation) {
  std::vector<Event> first;
  Lane* lane = find_lane(command.lane.operation);
  if (lane != nullptr) {
    if (!command.who.node.empty() && !planted(Plant::ended_not_told_first)) tell_named(*lane, command.who);
    const Endings::Entry* ending = command.who.node.empty() ? nullptr : ending_of(*lane, command.who);
    if (const Completion* last = kept_completion(lane)) {
      Event event = event_of(last->success ? EventKind::completed : EventKind::failed, *lane,
                             {NodeId(last->hold.node), RequestId()});
      event.at = last->hold.at;
      event.error = keep(last->error);
      event.result = keep(last->hold.result);
      event.permanent = last->permanent;
      event.token = last->hold.token;
      event.attempt = last->hold.attempt;
      first.push_back(event);
    } else if (ending != nullptr && !(lane->hold.held() && lane->hold.who() == command.who)) {
      const EventKind kind = ending->how == Ending::skipped   ? EventKind::completed
                             : ending->how == Ending::refused ? EventKind::refused
                                                              : EventKind::failed;
      Event event = event_of(kind, *lane, command.who);
      event.error = keep(ending->error);
      event.result = keep(ending->hold.result);
      event.permanent = ending->how == Ending::failed;
      event.token = ending->hold.token;
      event.attempt = ending->hold.attempt;
      first.push_back(event);
    }
    if (lane->hold.held() && !lane->hold.claimed()) {
      Event event = event_of(EventKind::granted, *lane, lane->hold.who());
      event.at = lane->hold.since;
      event.token = lane->hold.token;
      event.attempt = lane->hold.attempt;
      first.push_back(event);
    }
  }
  if (operation == nullptr) return first;
  Lane& own = get_lane(*operation);
  add_bond(own, command.who, command.bond, true);
  if (own.hold.held() && own.hold.who() == command.who && !own.hold.claimed()) {
    claim(own);
    record_hold(own);
  }
  return first;
}

void Rules::finish() {
  out_.unfinished = false;
  for (std::unique_ptr<Lane>* at = &resource_.lanes; *at;) {
    Lane& lane = **at;
    if (lane.queue && lane.queue->empty()) lane.queue.reset();
    if (!lane.hold.held() && !lane.queue && lane.failures > 0) {  // S12: the lane has emptied
      lane.failures = 0;
      if (lane.memory) lane.memory->last_error = SharedText();
      record_lane(RecordKind::failures_erased, lane);
    }
    if (lane.memory && lane.memory->ended) out_.unfinished = true;
    if (lane.memory && lane.memory->empty()) lane.memory.reset();
    if (lane.empty())
      *at = std::move(lane.next);
    else
      at = &lane.next;
  }
  check_invariants();
}

void Rules::check_invariants() const {
  int held = 0, excluding = 0;
  for_each_lane([&](Lane& lane) {
    held += lane.hold.held();
    excluding += lane.hold.held() && lane.hold.scope == Scope::resource;
  });
  TS_CHECK(excluding == 0 || held == 1, "at most one holder per conflict");
  for_each_lane([&](Lane& lane) {
    TS_CHECK(!lane.memory || !lane.memory->ended || !lane.memory->ended->waiters->empty(),
             "an ended queue is forgotten when all have been told");
    if (!lane.has_waiters() || held > 0) return;
    const Waiter& front = lane.queue->front();
    TS_CHECK(waiter_in_the_way(&lane, front.scope, front.ticket),
             "a free lane has no waiter that could be granted");
  });
}

}  // namespace turnstile
