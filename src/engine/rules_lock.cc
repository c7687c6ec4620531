// Section 2 of docs/semantics.md: what happens to a request for a lane. lock() reads as that section does.
#include <algorithm>

#include "base/check.h"
#include "engine/rules.h"

namespace turnstile {

LockAnswer Rules::lock(const LockCommand& command, const Operation& operation) {
  Lane* lane = find_lane(command.lane.operation);
  if (lane != nullptr) {
    tell_named(*lane, command.who);
    if (std::optional<LockAnswer> again = asked_again(*lane, command)) return *std::move(again);  // S2
  }
  const bool dereference = command.dereference && operation.rules.references == OnReferences::clear;
  if (dereference && keeps_references()) erase_reference(command.who.node);  // S19: whatever the answer

  const Scope scope = command.scope.value_or(settings_.default_scope);
  const Lane* holder = holder_in_the_way(operation, scope);
  if (holder != nullptr || waiter_in_the_way(lane, scope, UINT64_MAX)) {  // S3
    LockAnswer answer;
    if (!settings_.allow_multi_node_download) {
      answer.refusal = Refusal::busy;
      if (holder != nullptr) answer.holder = holder_view(*holder);
    } else if (lane != nullptr && lane->has_waiters() && lane->queue->size() >= settings_.max_queue) {
      answer.refusal = Refusal::queue_full;
    } else if (counters_.waiters.load(std::memory_order_relaxed) >= settings_.max_waiters) {
      answer.refusal = Refusal::too_many_waiters;
    } else {
      return enqueue(get_lane(operation), command, scope);
    }
    out_.measures.push_back({MeasureKind::refused, operation.metric_name(), {}});
    return answer;
  }

  Admission admission = admit(lane, operation, command.who.node, dereference);  // S4, S5
  if (admission.state != LockState::acquired) {
    const bool adds =
        admission.state == LockState::skipped && operation.rules.references == OnReferences::add;
    if (adds && !has_room_for_reference(command.who.node)) {  // whoever skips must be counted, or not skip
      admission = {};
      admission.state = LockState::refused;
      admission.refusal = Refusal::too_many_references;
    }
    const bool skipped = admission.state == LockState::skipped;
    if (skipped && adds) insert_reference(command.who.node);  // S17
    out_.measures.push_back(
        {skipped ? MeasureKind::skipped : MeasureKind::refused, operation.metric_name(), {}});
    LockAnswer answer;
    answer.state = admission.state;
    answer.refusal = admission.refusal;
    answer.error = keep(admission.error);
    answer.references = admission.references;
    if (skipped) answer.done = done_view(admission.hold);
    return answer;
  }

  Lane& own = get_lane(operation);  // S6
  Hold hold;
  hold.node = Text(command.who.node.text);
  hold.request = Text(command.who.request.text);
  hold.scope = scope;
  hold.lease_ms = uint32_t(to_ms(command.lease.value_or(Duration(0))));
  hold.monitor = command.monitor.value_or(false);
  if (!command.info.empty()) hold.extra().info = Text(command.info);
  grant(own, std::move(hold), now_);
  bool bonded = false;
  if (own.hold.monitor) bonded = add_bond(own, command.who, command.bond, false);
  start_deadline(own.hold);
  if (own.hold.monitor && !has_any_bond(own, command.who)) bond_lost(own, command.who);
  record_hold(own);
  LockAnswer answer = acquired_answer(own);
  answer.bonded = bonded;
  return answer;
}

std::optional<LockAnswer> Rules::asked_again(Lane& lane, const LockCommand& command) {
  if (lane.hold.held() && lane.hold.who() == command.who) return held_already(lane, command);
  if (lane.has_waiters()) {
    if (Waiter* waiter = lane.queue->find(command.who)) return waits_already(lane, *waiter, command);
  }
  const Endings::Entry* ending = ending_of(lane, command.who);
  if (ending == nullptr) return std::nullopt;
  if (ending->how != Ending::skipped) {  // told, or to be decided anew: either way it is over
    lane.memory->endings->erase(command.who);
    Record gone = fact(RecordKind::ending_erased, &lane);
    gone.who = command.who;
    record(gone);
    return std::nullopt;
  }
  if (lane.rules().references == OnReferences::add) insert_reference(command.who.node);
  measure(MeasureKind::skipped, lane);
  LockAnswer answer;
  answer.state = LockState::skipped;
  const bool of_another = planted(Plant::result_of_another) && lane.completion;
  answer.done = done_view(of_another ? lane.completion->hold : ending->hold);
  return answer;
}

LockAnswer Rules::held_already(Lane& lane, const LockCommand& command) {
  Hold& hold = lane.hold;
  const bool was_plain = hold.lease_ms == 0 && !hold.monitor;
  hold.by_polls = 0;
  if (!hold.claimed()) claim(lane);
  if (command.lease) hold.lease_ms = uint32_t(to_ms(*command.lease));
  bool bonded = false;
  if (command.monitor) {
    if (*command.monitor) bonded = add_bond(lane, command.who, command.bond, false);
    apply_monitor(lane, *command.monitor);
  }
  const bool plain = hold.lease_ms == 0 && !hold.monitor;
  const bool keeps_end = plain && was_plain && !planted(Plant::asking_prolongs_max_hold);
  if (!keeps_end) start_deadline(hold);  // max_hold is not extended by asking
  record_hold(lane);
  LockAnswer answer = acquired_answer(lane);
  answer.bonded = bonded;
  return answer;
}

LockAnswer Rules::waits_already(Lane& lane, Waiter& waiter, const LockCommand& command) {
  waiter.heard_at = now_;
  bool changed = false;
  if (command.lease && *command.lease != waiter.lease) {
    waiter.lease = *command.lease;
    changed = true;
  }
  if (command.monitor && *command.monitor != waiter.monitor) {
    waiter.monitor = *command.monitor;
    changed = true;
    if (!waiter.monitor) {  // an orderly end of that bond: no grace runs
      drop_connection_bonds(lane, command.who);
      waiter.bonded = !waiter.polls.empty() || has_any_bond(lane, command.who) || waiter.leaves_at != kNever;
    }
  }
  bool bonded = false;
  if (command.monitor.value_or(false)) bonded = add_bond(lane, command.who, command.bond, false);
  if (command.poll != PollId::none) waiter.polls.push_back(command.poll);
  if (bonded || command.poll != PollId::none) bond_gained(lane, command.who);
  if (changed) record_waiter(lane, waiter);
  LockAnswer answer = queued_answer(lane, waiter);
  answer.bonded = bonded;
  return answer;
}

LockAnswer Rules::enqueue(Lane& lane, const LockCommand& command, Scope scope) {
  TS_CHECK(!is_ended(lane, command.who), "who asks again has been told how its last wait ended");
  auto entry = std::make_unique<Waiter>();
  entry->node = Text(command.who.node.text);
  entry->request = Text(command.who.request.text);
  entry->info = Text(command.info);
  entry->ticket = counters_.tickets.fetch_add(1, std::memory_order_relaxed) + 1;
  entry->since = entry->heard_at = now_;
  entry->lease = command.lease.value_or(Duration(0));
  entry->scope = scope;
  entry->monitor = command.monitor.value_or(false);
  entry->dereference = command.dereference && lane.rules().references == OnReferences::clear;
  if (command.poll != PollId::none) entry->polls.push_back(command.poll);
  if (!lane.queue) lane.queue = std::make_unique<WaitQueue>();
  Waiter& waiter = lane.queue->add(std::move(entry));
  bool bonded = false;
  if (waiter.monitor) bonded = add_bond(lane, command.who, command.bond, false);
  waiter.bonded = !waiter.polls.empty() || has_any_bond(lane, command.who);
  record_waiter(lane, waiter);
  measure(MeasureKind::queued, lane);
  LockAnswer answer = queued_answer(lane, waiter);
  answer.bonded = bonded;
  return answer;
}

// S4, S5 and S19, asked when nobody is in the way: of a new request, and again of a waiter whose turn has
// come (S14).
Rules::Admission Rules::admit(const Lane* lane, const Operation& operation, NodeId node, bool dereference) {
  Admission admission;
  if (const Completion* last = kept_completion(lane)) {
    admission.hold = last->hold;
    if (last->success && operation.rules.on_success == OnSuccess::share) {
      admission.state = LockState::skipped;
      return admission;
    }
    if (last->permanent) {
      admission.state = LockState::failed;
      admission.refusal = Refusal::failed;
      admission.error = last->error;
      return admission;
    }
  }
  if (!keeps_references()) return admission;
  if (dereference && !planted(Plant::dereference_forgotten)) erase_reference(node);
  if (!resource_.references || operation.rules.guard == Guard::none) return admission;
  const bool skips = dereference || operation.rules.guard == Guard::skip;
  admission.state = skips ? LockState::skipped : LockState::refused;
  admission.refusal = skips ? Refusal::none : Refusal::referenced;
  if (dereference || !skips) admission.references = reference_names();  // they are the reason
  return admission;
}

// S7: the same operation, or either side with scope `resource`.
const Lane* Rules::holder_in_the_way(const Operation& operation, Scope scope) const {
  const Lane* found = nullptr;
  for_each_lane([&](Lane& lane) {
    if (!lane.hold.held()) return;
    const bool same = lane.operation == &operation;
    if (same || scope == Scope::resource || lane.hold.scope == Scope::resource) {
      if (found == nullptr || same) found = &lane;
    }
  });
  return found;
}

// Whether a waiter with a ticket below `before` conflicts. Of its own lane every older one does; the caller,
// who asks for the front of a lane or for a newcomer, passes that lane as `own`.
bool Rules::waiter_in_the_way(const Lane* own, Scope scope, uint64_t before) const {
  bool found = false;
  for_each_lane([&](Lane& lane) {
    if (found || !lane.has_waiters()) return;
    if (scope == Scope::resource || &lane == own)
      found = lane.queue->front().ticket < before;
    else
      found = !planted(Plant::scopes_of_waiters_ignored) && lane.queue->first_resource_scope() < before;
  });
  return found;
}

LockAnswer Rules::queued_answer(const Lane& lane, const Waiter& waiter) {
  LockAnswer answer;
  answer.state = LockState::queued;
  answer.position = lane.queue->position(waiter);
  if (const Lane* holder = holder_in_the_way(*lane.operation, waiter.scope))
    answer.holder = holder_view(*holder);
  return answer;
}

// Makes `hold` the lane's, with a new token. The caller still has to start its deadline and record it.
void Rules::grant(Lane& lane, Hold hold, Time waited_since) {
  TS_CHECK(!lane.hold.held(), "a lane has at most one hold");
  hold.token = Token(counters_.tokens.fetch_add(1, std::memory_order_relaxed) + 1);
  hold.since = now_;
  hold.attempt = lane.failures + 1;
  if (lane.failures > 0 && lane.memory) hold.extra().previous_error = lane.memory->last_error;
  if (wants_records_ && uint64_t(hold.token) % Counters::kTokenBlock == 1) {
    Record mark;
    mark.kind = RecordKind::token_mark;
    mark.number = uint64_t(hold.token) + Counters::kTokenBlock - 1;
    record(mark);
  }
  lane.hold = std::move(hold);
  Event event = event_of(EventKind::granted, lane, lane.hold.who());
  event.token = lane.hold.token;
  event.attempt = lane.hold.attempt;
  out_.events.push_back(event);
  measure(MeasureKind::granted, lane, now_ - waited_since);
}

LockAnswer Rules::acquired_answer(const Lane& lane) {
  LockAnswer answer;
  answer.state = LockState::acquired;
  answer.token = lane.hold.token;
  answer.attempt = lane.hold.attempt;
  if (lane.hold.extras) answer.previous_error = keep(lane.hold.extras->previous_error);
  return answer;
}

HolderView Rules::holder_view(const Lane& lane) {
  const Hold& hold = lane.hold;
  HolderView view;
  view.operation = name_of(lane);
  view.who = keep(hold.who());
  view.token = hold.token;
  view.since = hold.since;
  view.lease = std::chrono::milliseconds(hold.lease_ms);
  if (hold.extras) {
    if (hold.extras->progress_at != kNever) view.progress = hold.extras->progress;
    view.info = out_.keep(hold.extras->info);
  }
  return view;
}

Lane* Rules::find_lane(OperationName operation) const {
  for (Lane* lane = resource_.lanes.get(); lane != nullptr; lane = lane->next.get())
    if (lane->rules().name == operation.text) return lane;
  return nullptr;
}

Lane& Rules::get_lane(const Operation& operation) {
  if (Lane* lane = find_lane(OperationName(operation.rules.name))) return *lane;
  auto lane = std::make_unique<Lane>(operation);
  lane->next = std::move(resource_.lanes);
  resource_.lanes = std::move(lane);
  return *resource_.lanes;
}

}  // namespace turnstile
