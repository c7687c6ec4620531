// The model's lock call: section 2 of semantics.md, decision by decision.
#include <algorithm>

#include "model.h"

namespace turnstile::model {

// S2 to S6, in this order; S19's dropping of the caller's own reference comes right after S2.
PlainLock Model::lock(const LockCommand& command, Time now, Step& out) {
  Place at = place(command.lane);
  const Who who = who_of(command.who);
  if (at.lane.hold && at.lane.hold->who == who) return holder_asks_again(at, command, now);
  if (Waiter* waiter = find_waiter(at.lane, who)) return waiter_asks_again(at, *waiter, command, now);
  if (auto ended = at.lane.ended.find(who); ended != at.lane.ended.end() && ended->second.until > now) {
    if (ended->second.how == Ending::skipped) {
      use(at, who.node);
      return {.state = LockState::skipped, .done = view(ended->second.done, now)};
    }
    at.lane.ended.erase(ended);
  }
  drop_reference(at, who.node, command.dereference);

  const Scope scope = command.scope.value_or(settings_.default_scope);
  bool busy = !in_the_way(at, scope).empty();
  for (const auto& [operation, lane] : at.resource.lanes)
    for (const Waiter& waiter : lane.waiters)
      busy = busy || conflict(operation, waiter.scope, at.name.operation, scope);
  if (busy) return enqueue(at, command, scope, now);

  const Verdict verdict = judge(at, who.node, command.dereference, now, false);
  if (verdict.ending == Ending::skipped) {
    // Whoever skips must be counted, or not skip (section 9).
    if (at.rules.references == OnReferences::add && !has_room_for_reference(at.resource, who.node))
      return {.state = LockState::refused, .refusal = Refusal::too_many_references};
    use(at, who.node);
    return {.state = LockState::skipped, .references = verdict.references, .done = view(verdict.done, now)};
  }
  if (verdict.ending == Ending::failed)
    return {.state = LockState::failed, .refusal = Refusal::failed, .error = verdict.error};
  if (verdict.ending == Ending::refused)
    return {.state = LockState::refused, .refusal = Refusal::referenced, .references = verdict.references};

  const bool monitor = command.monitor.value_or(false);
  const bool bonded = monitor && command.bond != BondId::none;
  if (bonded) at.lane.bonds.insert({who, uint64_t(command.bond), true});
  Hold hold{.who = who, .scope = scope, .lease = command.lease.value_or(Duration(0)), .monitor = monitor};
  hold.info = command.info;
  PlainLock answer = acquired(grant(at, hold, now, out));
  answer.bonded = bonded;
  return answer;
}

// S21: asking again with monitor:false ends the connection as a bond.
static void drop_connections(LaneModel& lane, const Who& who) {
  std::erase_if(lane.bonds, [&](const Bond& bond) { return bond.connection && bond.who == who; });
}

// S2 for a holder: the same token; claims, restarts the lease, applies a new lease or monitor.
PlainLock Model::holder_asks_again(Place& at, const LockCommand& command, Time now) {
  Hold& hold = *at.lane.hold;
  const bool was_plain = hold.plain() && !hold.unclaimed;
  const Time max_until = hold.max_until;
  if (command.lease) hold.lease = *command.lease;
  bool bonded = false;
  if (command.monitor) {
    hold.monitor = *command.monitor;
    if (!hold.monitor) drop_connections(at.lane, hold.who);
    if (hold.monitor && command.bond != BondId::none) {
      at.lane.bonds.insert({hold.who, uint64_t(command.bond), true});
      bonded = true;
    }
  }
  hold.unclaimed = false;
  hold.by_polls = 0;
  hold.claim_until = kNever;
  start_clocks(hold, now);
  if (was_plain && hold.plain()) hold.max_until = max_until;  // asking again does not extend it
  watch_bonds(at.lane, now);
  PlainLock answer = acquired(hold);
  answer.bonded = bonded;
  return answer;
}

// S2 for a waiter: keeps its place, scope and dereference; a lease, monitor, poll or bond is taken.
PlainLock Model::waiter_asks_again(Place& at, Waiter& waiter, const LockCommand& command, Time now) {
  waiter.heard = now;
  if (command.lease) waiter.lease = *command.lease;
  bool bonded = false;
  if (command.monitor) {
    waiter.monitor = *command.monitor;
    if (!waiter.monitor) drop_connections(at.lane, waiter.who);
    if (waiter.monitor && command.bond != BondId::none) {
      at.lane.bonds.insert({waiter.who, uint64_t(command.bond), true});
      bonded = true;
    }
  }
  if (command.poll != PollId::none) waiter.polls.insert(uint64_t(command.poll));
  if (bonded || command.poll != PollId::none) waiter.grace_until = kNever;
  PlainLock answer = queued(at, waiter);
  answer.bonded = bonded;
  return answer;
}

// S3.
PlainLock Model::enqueue(Place& at, const LockCommand& command, Scope scope, Time now) {
  if (!settings_.allow_multi_node_download)
    return {.state = LockState::refused, .refusal = Refusal::busy, .holders = in_the_way(at, scope)};
  if (at.lane.waiters.size() >= settings_.max_queue)
    return {.state = LockState::refused, .refusal = Refusal::queue_full};
  if (waiter_count() >= settings_.max_waiters)
    return {.state = LockState::refused, .refusal = Refusal::too_many_waiters};

  const Who who = who_of(command.who);
  Waiter waiter{.who = who, .ticket = ++last_ticket_, .scope = scope, .since = now, .heard = now};
  waiter.lease = command.lease.value_or(Duration(0));
  waiter.monitor = command.monitor.value_or(false);
  waiter.dereference = command.dereference;
  waiter.info = command.info;
  if (command.poll != PollId::none) waiter.polls.insert(uint64_t(command.poll));
  const bool bonded = waiter.monitor && command.bond != BondId::none;
  if (bonded) at.lane.bonds.insert({who, uint64_t(command.bond), true});
  at.lane.ended.erase(who);
  at.lane.waiters.push_back(waiter);
  PlainLock answer = queued(at, waiter);
  answer.bonded = bonded;
  return answer;
}

// S19: a delete with `dereference` gives up the caller's own reference, whatever the answer will be.
void Model::drop_reference(Place& at, const std::string& node, bool dereference) {
  if (dereference && at.rules.references == OnReferences::clear && settings_.server_keeps_references)
    at.resource.references.erase(node);
}

// S17: who is told to skip uses the content from then on.
void Model::use(Place& at, const std::string& node) {
  if (at.rules.references == OnReferences::add && settings_.server_keeps_references)
    at.resource.references.insert(node);
}

bool Model::has_room_for_reference(const ResourceModel& resource, const std::string& node) const {
  if (!settings_.server_keeps_references || resource.references.contains(node)) return true;
  size_t count = 0;
  for (const auto& [name, other] : resources_) count += other.references.size();
  return count < settings_.max_references;
}

// S4, S19, S5.
Model::Verdict Model::judge(Place& at, const std::string& node, bool dereference, Time now, bool drop) {
  if (const auto& kept = at.lane.completion; kept && kept->until > now) {
    if (kept->what.success && at.rules.on_success == OnSuccess::share)
      return {.ending = Ending::skipped,
              .token = kept->token,
              .attempt = kept->attempt,
              .done = Done{kept->what.node, kept->what.at, kept->what.result}};
    if (kept->what.permanent)
      return {.ending = Ending::failed,
              .error = kept->what.error,
              .token = kept->token,
              .attempt = kept->attempt};
  }
  if (drop) drop_reference(at, node, dereference);
  if (at.resource.references.empty() || at.rules.guard == Guard::none) return {};
  if (at.rules.references == OnReferences::clear && dereference)
    return {.ending = Ending::skipped, .references = names(at.resource.references)};
  if (at.rules.guard == Guard::skip) return {.ending = Ending::skipped};
  return {.ending = Ending::refused, .references = names(at.resource.references)};
}

PlainLock Model::acquired(const Hold& hold) const {
  return {.state = LockState::acquired,
          .token = hold.token,
          .attempt = hold.attempt,
          .previous_error = hold.previous_error};
}

PlainLock Model::queued(const Place& at, const Waiter& waiter) const {
  uint32_t position = 1;
  for (const Waiter& other : at.lane.waiters)
    if (other.ticket < waiter.ticket) ++position;
  return {.state = LockState::queued, .position = position, .holders = in_the_way(at, waiter.scope)};
}

// The lane's own hold if there is one; else every hold that a request of this scope conflicts with.
std::vector<PlainHolder> Model::in_the_way(const Place& at, Scope scope) const {
  if (at.lane.hold) return {view(at.name.operation, *at.lane.hold)};
  std::vector<PlainHolder> holders;
  for (const auto& [operation, lane] : at.resource.lanes)
    if (lane.hold && conflict(operation, lane.hold->scope, at.name.operation, scope))
      holders.push_back(view(operation, *lane.hold));
  return holders;
}

}  // namespace turnstile::model
