// The model's calls other than lock, and what they have in common: how holds and waits begin and end.
#include "model.h"

#include <algorithm>

namespace turnstile::model {

Who who_of(const Requester& who) { return {std::string(who.node.text), std::string(who.request.text)}; }

bool has_any_bond(const LaneModel& lane, const Who& who) {
  return std::ranges::any_of(lane.bonds, [&](const Bond& bond) { return bond.who == who; });
}

Waiter* find_waiter(LaneModel& lane, const Who& who) {
  const auto found = std::ranges::find(lane.waiters, who, &Waiter::who);
  return found == lane.waiters.end() ? nullptr : &*found;
}

Model::Place Model::place(const std::string& operation, const std::string& resource) {
  ResourceModel& found = resources_[resource];
  return {{operation, resource}, found, found.lanes[operation], table_.of(operation)};
}

// S8, S15, S9 to S13.
PlainUnlock Model::unlock(const UnlockCommand& command, Time now, Step& out) {
  Place at = place(command.lane);
  PlainUnlock answer{.waiters = nodes_waiting(at.resource)};
  if (const auto& last = at.lane.released; last && last->until > now && command.token != Token::none &&
                                           last->token == uint64_t(command.token) &&
                                           last->node == command.who.node.text) {
    answer.already = true;
    return answer;
  }
  if (const Refusal refusal = check_holder(at, command.who, command.token); refusal != Refusal::none)
    return {.refusal = refusal};

  const std::string error = command.success ? "" : std::string(command.error);
  const bool permanent = command.permanent && !command.success;
  const EventKind kind = command.success ? EventKind::completed : EventKind::failed;
  const Hold hold = end_hold(at, kind, error, permanent, now, out);
  out.events.back().result = command.result;  // S39
  at.lane.released.reset();
  if (settings_.retain_released > Duration(0))
    at.lane.released = Released{hold.token, hold.who.node, now + settings_.retain_released};
  at.lane.completion.reset();

  const PlainCompletion how{
      hold.who.node, command.success, permanent, error, now, std::string(command.result)};
  if (command.success) {
    at.lane.failures = 0;
    at.lane.last_error.clear();
    use(at, hold.who.node);
    if (at.rules.references == OnReferences::clear && settings_.server_keeps_references)
      at.resource.references.clear();
    if (at.rules.voids)
      for (auto& [operation, lane] : at.resource.lanes)
        if (operation != at.name.operation) {
          lane.completion.reset();
          std::erase_if(lane.ended, [](const auto& ended) { return ended.second.how == Ending::skipped; });
        }
    const bool shares = at.rules.on_success == OnSuccess::share;
    if (command.keep)
      answer.keep = shares ? std::min(*command.keep, settings_.max_keep) : Duration(0);  // S38
    if (shares) {
      const Duration keep = answer.keep.value_or(settings_.retain_completed);
      if (keep > Duration(0)) at.lane.completion = {how, now + keep, hold.token, hold.attempt};
      while (!at.lane.waiters.empty())
        end_wait(at, Who(at.lane.waiters.front().who),
                 {.ending = Ending::skipped,
                  .token = hold.token,
                  .attempt = hold.attempt,
                  .done = Done{hold.who.node, now, how.result}},
                 now, out);
    }
  } else {
    ++at.lane.failures;
    at.lane.last_error = error;
    if (permanent) {
      if (settings_.retain_permanent_failure > Duration(0))
        at.lane.completion = {how, now + settings_.retain_permanent_failure, hold.token, hold.attempt};
      while (!at.lane.waiters.empty())
        end_wait(at, Who(at.lane.waiters.front().who),
                 {.ending = Ending::failed, .error = error, .token = hold.token, .attempt = hold.attempt},
                 now, out);
    }
  }
  advance(at.name.resource, now, out);
  if (at.lane.hold) answer.next = at.lane.hold->who.node;
  return answer;
}

Refusal Model::check_holder(const Place& at, const Requester& who, Token token) const {
  if (!at.lane.hold) return Refusal::not_held;
  const Hold& hold = *at.lane.hold;
  if (hold.who.node != who.node.text) return Refusal::not_holder;
  if (token == Token::none) return hold.who.request == who.request.text ? Refusal::none : Refusal::not_holder;
  return hold.token == uint64_t(token) ? Refusal::none : Refusal::stale_token;
}

// S22.
PlainRenew Model::renew(const RenewCommand& command, Time now) {
  Place at = place(command.lane);
  if (const Refusal refusal = check_holder(at, command.who, command.token); refusal != Refusal::none)
    return {.refusal = refusal};
  Hold& hold = *at.lane.hold;
  claim(at, now);
  if (command.lease) hold.lease = *command.lease;
  if (hold.lease > Duration(0)) {
    hold.lease_until = now + hold.lease;
    hold.max_until = kNever;
  }
  if (command.progress && command.progress != hold.progress) {
    hold.progress = command.progress;
    if (settings_.stall_timeout > Duration(0)) hold.stall_until = now + settings_.stall_timeout;
  }
  return {.lease = hold.lease};
}

// S25.
bool Model::cancel(const CancelCommand& command, Time now, Step& out) {
  Place at = place(command.lane);
  const Who who = who_of(command.who);
  if (find_waiter(at.lane, who)) {
    leave(at, who, "cancelled", now, out);
    advance(at.name.resource, now, out);
    return true;
  }
  if (!at.lane.hold || at.lane.hold->who != who || !at.lane.hold->unclaimed) return false;
  end_by_failure(at, EventKind::expired, "cancelled", now, out);
  return true;
}

// S26.
PlainBreak Model::break_hold(const BreakCommand& command, Time now, Step& out) {
  Place at = place(command.lane);
  if (!at.lane.hold) return {.refusal = Refusal::not_held};
  const bool another = command.token != Token::none && uint64_t(command.token) != at.lane.hold->token;
  if (another) return {.refusal = Refusal::stale_token};
  const std::string node = at.lane.hold->who.node;
  end_by_failure(at, EventKind::broken, std::string(command.reason), now, out);
  return {.node = node};
}

// S40.
bool Model::forget(const ForgetCommand& command, Time now) {
  Place at = place(command.lane);
  const bool kept = at.lane.completion && at.lane.completion->until > now;
  at.lane.completion.reset();
  std::erase_if(at.lane.ended, [](const auto& ended) { return ended.second.how == Ending::skipped; });
  return kept;
}

PlainReferences Model::references(ResourceId resource) {
  if (!settings_.server_keeps_references) return {.refusal = Refusal::references_off};
  const auto& nodes = resources_[std::string(resource.text)].references;
  return {.count = uint32_t(nodes.size()), .nodes = names(nodes)};
}

// S19: not while an operation that clears them holds the resource.
PlainReferences Model::add_reference(const ReferenceCommand& command) {
  if (!settings_.server_keeps_references) return {.refusal = Refusal::references_off};
  ResourceModel& resource = resources_[std::string(command.resource.text)];
  for (const auto& [operation, lane] : resource.lanes)
    if (lane.hold && table_.of(operation).references == OnReferences::clear)
      return {.refusal = Refusal::busy};
  if (!has_room_for_reference(resource, std::string(command.node.text)))
    return {.refusal = Refusal::too_many_references};
  const bool changed = resource.references.insert(std::string(command.node.text)).second;
  PlainReferences answer = references(command.resource);
  answer.changed = changed;
  return answer;
}

PlainReferences Model::release_reference(const ReferenceCommand& command) {
  if (!settings_.server_keeps_references) return {.refusal = Refusal::references_off};
  ResourceModel& resource = resources_[std::string(command.resource.text)];
  const bool changed = resource.references.erase(std::string(command.node.text)) > 0;
  PlainReferences answer = references(command.resource);
  answer.changed = changed;
  return answer;
}

PlainReferences Model::release_node(NodeId node) {
  if (!settings_.server_keeps_references) return {.refusal = Refusal::references_off};
  PlainReferences answer;
  for (auto& [name, resource] : resources_)
    answer.count += uint32_t(resource.references.erase(std::string(node.text)));
  answer.changed = answer.count > 0;
  return answer;
}

// A new hold: S6, and S14's for a waiter. Whether it is claimed has been decided by the caller.
Hold& Model::grant(Place& at, Hold hold, Time now, Step& out) {
  hold.token = ++last_token_;
  hold.since = now;
  hold.attempt = at.lane.failures + 1;
  hold.previous_error = at.lane.last_error;
  at.lane.ended.erase(hold.who);
  out.events.push_back({EventKind::granted, at.name, hold.who, now, hold.token, hold.attempt, false, "", ""});
  if (!hold.unclaimed) start_clocks(hold, now);
  at.lane.hold = hold;
  watch_bonds(at.lane, now);
  return *at.lane.hold;
}

// S14: from the claim on, lease and max_hold run.
void Model::claim(Place& at, Time now) {
  Hold& hold = *at.lane.hold;
  hold.by_polls = 0;
  if (!hold.unclaimed) return;
  hold.unclaimed = false;
  hold.claim_until = kNever;
  start_clocks(hold, now);
}

void Model::start_clocks(Hold& hold, Time now) {
  hold.lease_until = hold.lease > Duration(0) ? now + hold.lease : kNever;
  hold.max_until = hold.plain() && settings_.max_hold > Duration(0) ? now + settings_.max_hold : kNever;
}

// S21 for the hold: without a bond the grace runs, from the first moment that this was so.
void Model::watch_bonds(LaneModel& lane, Time now) {
  if (!lane.hold) return;
  Hold& hold = *lane.hold;
  if (!hold.monitor || has_any_bond(lane, hold.who)) {
    hold.bond_until = kNever;
  } else if (hold.bond_until == kNever) {
    hold.bond_until = now + settings_.bond_grace;
  }
}

// Takes the hold away and says so; what follows for the lane is the caller's to do.
Hold Model::end_hold(Place& at, EventKind kind, const std::string& error, bool permanent, Time now,
                     Step& out) {
  const Hold hold = *at.lane.hold;
  at.lane.hold.reset();
  const bool has_reason = kind == EventKind::expired || kind == EventKind::broken;
  out.events.push_back({kind, at.name, hold.who, now, hold.token, hold.attempt, permanent, error,
                        has_reason ? error : std::string()});
  return hold;
}

// S12's path for holds that nobody has unlocked.
void Model::end_by_failure(Place& at, EventKind kind, const std::string& reason, Time now, Step& out) {
  end_hold(at, kind, reason, false, now, out);
  at.lane.completion.reset();
  ++at.lane.failures;
  at.lane.last_error = reason;
  advance(at.name.resource, now, out);
}

// A wait ends without a grant and not by the waiter's own doing: remembered (S2), and told to its open polls.
// Only those polls are live requests, so only they make a skip a use of the content (S17).
void Model::end_wait(Place& at, const Who& who, const Verdict& verdict, Time now, Step& out) {
  const Waiter waiter = *find_waiter(at.lane, who);
  std::erase_if(at.lane.waiters, [&](const Waiter& other) { return other.who == who; });
  if (settings_.claim_timeout > Duration(0))
    at.lane.ended[who] = {*verdict.ending, verdict.error,   now + settings_.claim_timeout,
                          verdict.token,   verdict.attempt, verdict.done};
  PlainLock answer{.references = verdict.references};
  switch (*verdict.ending) {
    case Ending::skipped:
      answer.state = LockState::skipped;
      answer.done = view(verdict.done, now);
      answer.done.ago = {};
      if (!waiter.polls.empty()) use(at, who.node);
      break;
    case Ending::refused:
      answer.state = LockState::refused;
      answer.refusal = Refusal::referenced;
      out.events.push_back({EventKind::refused, at.name, who, now, 0, 0, false, kAnySentence, ""});
      break;
    case Ending::failed:
      answer.state = LockState::failed;
      answer.refusal = Refusal::failed;
      answer.error = verdict.error;
      break;
  }
  for (uint64_t poll : waiter.polls) out.wakes.push_back({poll, answer});
}

// A waiter goes of its own will, or because its bond broke.
void Model::leave(Place& at, const Who& who, const std::string& reason, Time now, Step& out) {
  const Waiter waiter = *find_waiter(at.lane, who);
  std::erase_if(at.lane.waiters, [&](const Waiter& other) { return other.who == who; });
  out.events.push_back({EventKind::cancelled, at.name, who, now, 0, 0, false, "", reason});
  for (uint64_t poll : waiter.polls) out.wakes.push_back({poll, {.state = LockState::cancelled}});
}

// S14: claimed at once if its long poll or a bond is there, else unclaimed for a while.
void Model::grant_waiter(Place& at, const Who& who, Time now, Step& out) {
  const Waiter waiter = *find_waiter(at.lane, who);
  std::erase_if(at.lane.waiters, [&](const Waiter& other) { return other.who == who; });
  Hold hold{.who = who,
            .scope = waiter.scope,
            .lease = waiter.lease,
            .monitor = waiter.monitor,
            .info = waiter.info};
  hold.bond_until = waiter.grace_until;  // goes on running if it is monitored
  hold.unclaimed = waiter.polls.empty() && !has_any_bond(at.lane, who);
  hold.by_polls = has_any_bond(at.lane, who) ? 0 : waiter.polls.size();
  if (hold.unclaimed) {
    const bool silent = now - waiter.heard >= settings_.claim_timeout;
    hold.claim_until = now + (silent ? settings_.short_claim() : settings_.claim_timeout);
  }
  const PlainLock answer = acquired(grant(at, hold, now, out));
  for (uint64_t poll : waiter.polls) out.wakes.push_back({poll, answer});
}

// After a hold has ended or a waiter has gone: whoever can go now, goes (S10 to S14).
void Model::advance(const std::string& resource, Time now, Step& out) {
  leave_overdue(resource, now, out);
  while (advance_once(resource, now, out)) {
  }
  settle(resources_[resource]);
}

bool Model::advance_once(const std::string& resource, Time now, Step& out) {
  std::map<uint64_t, std::pair<std::string, Waiter>> by_ticket;  // all of the resource, with their operation
  for (const auto& [operation, lane] : resources_[resource].lanes)
    for (const Waiter& waiter : lane.waiters) by_ticket.insert({waiter.ticket, {operation, waiter}});

  for (const auto& [ticket, entry] : by_ticket) {
    const auto& [operation, waiter] = entry;
    bool may_go = true;
    for (const auto& [other, lane] : resources_[resource].lanes) {
      if (lane.hold && conflict(other, lane.hold->scope, operation, waiter.scope)) may_go = false;
      for (const Waiter& older : lane.waiters)
        if (older.ticket < ticket && conflict(other, older.scope, operation, waiter.scope)) may_go = false;
    }
    if (!may_go) continue;
    Place at = place(operation, resource);
    const Verdict verdict = judge(at, waiter.who.node, waiter.dereference, now, true);
    if (verdict.ending) {
      end_wait(at, waiter.who, verdict, now, out);
    } else {
      grant_waiter(at, waiter.who, now, out);
    }
    return true;
  }
  return false;
}

// An emptied lane counts its attempts from 1 again (S12); a connection is a bond only of a hold or a wait.
void Model::settle(ResourceModel& resource) {
  for (auto& [operation, lane] : resource.lanes) {
    if (!lane.hold && lane.waiters.empty()) {
      lane.failures = 0;
      lane.last_error.clear();
    }
    std::erase_if(lane.bonds, [&lane](const Bond& bond) {
      const bool holds = lane.hold && lane.hold->who == bond.who;
      return bond.connection && !holds && !find_waiter(lane, bond.who);
    });
  }
}

}  // namespace turnstile::model
