// Section 6 of docs/semantics.md: claims, leases, bonds, progress, and what happens when they run out.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "engine/rules.h"

namespace turnstile {

// Begins the lease, or else max_hold, of a hold that is claimed.
void Rules::start_deadline(Hold& hold) {
  if (hold.lease_ms > 0) {
    hold.deadline = Deadline::lease;
    hold.until = later(now_, std::chrono::milliseconds(hold.lease_ms));
  } else {
    hold.deadline = Deadline::max_hold;
    const bool plain = !hold.monitor && settings_.max_hold > Duration(0);  // S23
    hold.until = plain ? later(now_, settings_.max_hold) : kNever;
  }
}

void Rules::claim(Lane& lane) {
  TS_CHECK(!lane.hold.claimed(), "a grant is claimed once");
  start_deadline(lane.hold);
}

RenewAnswer Rules::renew(const RenewCommand& command) {
  Lane* lane = find_lane(command.lane.operation);
  const Refusal refusal = check_holder(lane, command.who, command.token);
  if (refusal != Refusal::none) return {refusal, {}};
  Hold& hold = lane->hold;
  if (!planted(Plant::renew_keeps_by_poll)) hold.by_polls = 0;
  bool changed = false;
  if (!hold.claimed()) {
    claim(*lane);
    changed = true;
  }
  if (command.lease && uint32_t(to_ms(*command.lease)) != hold.lease_ms) {
    hold.lease_ms = uint32_t(to_ms(*command.lease));
    changed = true;
  }
  if (hold.lease_ms > 0 && !planted(Plant::renewal_without_effect)) start_deadline(hold);
  if (command.progress) {
    HoldExtras& extras = hold.extra();
    if (extras.progress_at == kNever || extras.progress != *command.progress) {
      extras.progress = *command.progress;
      extras.progress_at = now_;
      changed = true;
    }
  }
  if (changed)
    record_hold(*lane);  // a renewal alone needs none: after a restart a lease has its full time again
  return {Refusal::none, std::chrono::milliseconds(hold.lease_ms)};
}

void Rules::apply_monitor(Lane& lane, bool monitor) {
  lane.hold.monitor = monitor;
  if (!monitor) {
    drop_connection_bonds(lane, lane.hold.who());
    if (lane.hold.extras) lane.hold.extras->bond_until = kNever;
  } else if (!has_any_bond(lane, lane.hold.who())) {
    bond_lost(lane, lane.hold.who());
  }
}

bool Rules::add_bond(Lane& lane, const Requester& who, BondId bond, bool subscription) {
  if (bond == BondId::none) return false;
  LaneMemory& memory = lane.remember();
  if (!memory.bonds) memory.bonds = std::make_unique<Bonds>();
  memory.bonds->add(who, bond, subscription);
  bond_gained(lane, who);
  return true;
}

bool Rules::has_any_bond(const Lane& lane, const Requester& who) const {
  return lane.memory && lane.memory->bonds && lane.memory->bonds->any(who);
}

bool Rules::has_bond(OperationName operation, const Requester& who, BondId bond) const {
  const Lane* lane = find_lane(operation);
  if (lane == nullptr || !lane->memory || !lane->memory->bonds) return false;
  const bool subscriptions_only = is_ended(*lane, who);  // its connections end with the wait
  return lane->memory->bonds->has(who, bond, subscriptions_only);
}

// Stops the grace of whoever has got a bond, or an open long poll, again.
void Rules::bond_gained(Lane& lane, const Requester& who) {
  if (lane.hold.held() && lane.hold.who() == who) {
    lane.hold.by_polls = 0;
    if (lane.hold.extras) lane.hold.extras->bond_until = kNever;
    return;
  }
  Waiter* waiter = lane.has_waiters() ? lane.queue->find(who) : nullptr;
  if (waiter == nullptr) return;
  if (!planted(Plant::new_bond_too_late)) lane.queue->set_leaves_at(*waiter, kNever);
  if (waiter->bonded) return;
  waiter->bonded = true;
  record_waiter(lane, *waiter);
}

// Starts the grace of whoever has no bond left (S21).
void Rules::bond_lost(Lane& lane, const Requester& who) {
  if (has_any_bond(lane, who)) return;
  if (lane.hold.held() && lane.hold.who() == who) {
    if (lane.hold.monitor) lane.hold.extra().bond_until = later(now_, settings_.bond_grace);
    return;
  }
  Waiter* waiter = lane.has_waiters() ? lane.queue->find(who) : nullptr;
  if (waiter != nullptr && waiter->polls.empty())
    lane.queue->set_leaves_at(*waiter, later(now_, settings_.bond_grace));
}

void Rules::drop_connection_bonds(Lane& lane, const Requester& who) {
  if (lane.memory && lane.memory->bonds) lane.memory->bonds->erase_connections(who);
}

void Rules::close_bond(OperationName operation, const Requester& who, BondId bond) {
  Lane* lane = find_lane(operation);
  if (lane == nullptr || !lane->memory || !lane->memory->bonds) return;
  if (!lane->memory->bonds->erase(who, bond)) return;
  Waiter* waiter = lane->has_waiters() ? lane->queue->find(who) : nullptr;
  if (waiter != nullptr) waiter->heard_at = now_;  // it was there until now
  bond_lost(*lane, who);
}

void Rules::break_poll(OperationName operation, const Requester& who, PollId poll) {
  Lane* lane = find_lane(operation);
  if (lane != nullptr) tell_named(*lane, who);
  Waiter* waiter = lane != nullptr && lane->has_waiters() ? lane->queue->find(who) : nullptr;
  if (waiter != nullptr && std::erase(waiter->polls, poll) > 0) {
    waiter->heard_at = now_;  // it was there until now
    bond_lost(*lane, who);
  }
  // Its grant was on the way to the poll when that broke (S36).
  if (waiter == nullptr && lane != nullptr && lane->hold.held() && lane->hold.who() == who)
    undelivered(operation, who, lane->hold.token);
}

std::optional<LockAnswer> Rules::end_poll(OperationName operation, const Requester& who, PollId poll) {
  Lane* lane = find_lane(operation);
  if (lane != nullptr) tell_named(*lane, who);
  Waiter* waiter = lane != nullptr && lane->has_waiters() ? lane->queue->find(who) : nullptr;
  if (waiter == nullptr || std::erase(waiter->polls, poll) == 0) return std::nullopt;
  waiter->heard_at = now_;
  // A time-out is no break: it keeps its place although nobody waits for an answer now (S24).
  const bool bonded = !waiter->polls.empty() || has_any_bond(*lane, who);
  if (waiter->bonded != bonded) {
    waiter->bonded = bonded;
    record_waiter(*lane, *waiter);
  }
  return queued_answer(*lane, *waiter);
}

// S36: nobody has read the answer that granted it, and nothing else shows that its holder knows. Each of its
// long polls tells that once, here or by breaking.
void Rules::undelivered(OperationName operation, const Requester& who, Token token) {
  Lane* lane = find_lane(operation);
  if (lane == nullptr || !lane->hold.held() || lane->hold.token != token) return;
  if (lane->hold.who() != who || lane->hold.by_polls == 0) return;
  if (--lane->hold.by_polls > 0) return;  // another poll may have brought it
  lane->hold.deadline = Deadline::unclaimed;
  lane->hold.until = later(now_, settings_.claim_timeout);
  record_hold(*lane);
}

// Why a hold must end now; empty: it need not. What ran out first gives the reason.
std::string_view Rules::due_reason(const Hold& hold) const {
  std::string_view reason;
  Time first = kNever;
  auto consider = [&](Time until, std::string_view name) {
    if (until > now_ || until >= first) return;
    first = until;
    reason = name;
  };
  consider(hold.until, hold.deadline == Deadline::unclaimed ? "unclaimed"
                       : hold.deadline == Deadline::lease   ? "lease"
                                                            : "max_hold");
  if (hold.extras) {
    consider(hold.extras->bond_until, "bond");
    if (settings_.stall_timeout > Duration(0) && hold.extras->progress_at != kNever)
      consider(later(hold.extras->progress_at, settings_.stall_timeout), "stall");
  }
  return reason;
}

void Rules::expire() {
  leave_overdue();
  // In the order of their names, so that the outcome does not depend on which lane was used first.
  std::vector<Lane*> lanes;
  for_each_lane([&](Lane& lane) { lanes.push_back(&lane); });
  std::sort(lanes.begin(), lanes.end(), [](Lane* a, Lane* b) { return a->rules().name < b->rules().name; });
  for (Lane* lane : lanes) {
    if (!lane->hold.held()) continue;
    const std::string_view reason = due_reason(lane->hold);
    if (reason.empty()) continue;
    fail(*lane, EventKind::expired, reason, false);
    if (planted(Plant::double_expiry) && lane->hold.held()) fail(*lane, EventKind::expired, reason, false);
  }
  if (!planted(Plant::broken_bond_wakes_nobody)) advance();
  for (Lane* lane : lanes) {
    tell_ended(*lane);
    drop_retained(*lane);
  }
}

// S21: whose grace is over has gone, even if nobody has looked since: it must not be granted what it will not
// claim.
void Rules::leave_overdue() {
  std::vector<std::pair<std::unique_ptr<Waiter>, Lane*>> leaving;
  for_each_lane([&](Lane& lane) {
    if (!lane.has_waiters() || lane.queue->next_leave() > now_) return;
    for (std::unique_ptr<Waiter>& waiter : lane.queue->take_due_to_leave(now_))
      leaving.emplace_back(std::move(waiter), &lane);
  });
  std::sort(leaving.begin(), leaving.end(),
            [](const auto& a, const auto& b) { return a.first->ticket < b.first->ticket; });
  for (const auto& [waiter, lane] : leaving) has_left(*lane, *waiter, "bond");
}

// No records: everything retained carries its end, and a reader of the journal drops it likewise.
void Rules::drop_retained(Lane& lane) {
  if (lane.completion && lane.completion->until <= now_) lane.forget_completion();
  if (!lane.memory) return;
  if (lane.memory->released.until <= now_) lane.memory->released = Released();
  if (lane.memory->endings) lane.memory->endings->drop_until(now_);
}

Time Rules::next_deadline() const {
  Time next = kNever;
  auto consider = [&](Time until) { next = std::min(next, until); };
  for_each_lane([&](Lane& lane) {
    if (lane.hold.held()) {
      consider(lane.hold.until);
      if (lane.hold.extras) {
        consider(lane.hold.extras->bond_until);
        if (settings_.stall_timeout > Duration(0) && lane.hold.extras->progress_at != kNever)
          consider(later(lane.hold.extras->progress_at, settings_.stall_timeout));
      }
    }
    if (lane.queue && !planted(Plant::grace_has_no_alarm)) consider(lane.queue->next_leave());
    if (lane.completion) consider(lane.completion->until);
    if (!lane.memory) return;
    if (lane.memory->ended) consider(now_);  // the next of them are told as soon as somebody looks
    if (lane.memory->released.token != Token::none) consider(lane.memory->released.until);
    if (lane.memory->endings) consider(lane.memory->endings->next());
  });
  return next;
}

}  // namespace turnstile
