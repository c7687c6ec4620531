// Section 3 of docs/semantics.md: how holds and waits end, and who goes next.
#include <algorithm>

#include "base/check.h"
#include "engine/rules.h"

namespace turnstile {

// S8, in its order. The lane may be nullptr: nobody ever asked for it.
Refusal Rules::check_holder(const Lane* lane, const Requester& who, Token token) const {
  if (lane == nullptr || !lane->hold.held()) return Refusal::not_held;
  if (lane->hold.node.view() != who.node.text && !planted(Plant::anybody_may_unlock))
    return Refusal::not_holder;
  if (token == Token::none)
    return lane->hold.request.view() == who.request.text ? Refusal::none : Refusal::not_holder;
  if (planted(Plant::stale_unlock_accepted)) return Refusal::none;
  return lane->hold.token == token ? Refusal::none : Refusal::stale_token;
}

UnlockAnswer Rules::unlock(const UnlockCommand& command) {
  UnlockAnswer answer;
  Lane* lane = find_lane(command.lane.operation);
  if (lane != nullptr && lane->memory && command.token != Token::none) {  // S15
    const Released& released = lane->memory->released;
    if (released.token == command.token && released.until > now_ &&
        released.node.view() == command.who.node.text) {
      answer.already = true;
      answer.waiters = waiting_nodes();
      return answer;
    }
  }
  answer.refusal = check_holder(lane, command.who, command.token);
  if (answer.refusal != Refusal::none) return answer;
  answer.waiters = waiting_nodes();  // S16: as they were just before

  if (settings_.retain_released > Duration(0)) {
    Released& released = lane->remember().released;
    released = {lane->hold.token, Text(lane->hold.node.view()), later(now_, settings_.retain_released)};
    record(released_record(*lane));
  }
  if (command.success)
    succeed(*lane, command, answer);
  else
    fail(*lane, EventKind::failed, command.error, command.permanent);
  if (lane->hold.held()) answer.next = NodeId(out_.keep(lane->hold.node));
  return answer;
}

BreakAnswer Rules::break_hold(const BreakCommand& command) {
  Lane* lane = find_lane(command.lane.operation);
  if (lane == nullptr || !lane->hold.held()) return {Refusal::not_held, {}};
  if (command.token != Token::none && command.token != lane->hold.token) return {Refusal::stale_token, {}};
  const NodeId node(out_.keep(lane->hold.node));
  fail(*lane, EventKind::broken, command.reason, false);
  return {Refusal::none, node};
}

// S40: the lane is as if nobody had ever done its work. A hold, and those who wait, are not touched.
ForgetAnswer Rules::forget(const ForgetCommand& command) {
  Lane* lane = find_lane(command.lane.operation);
  if (lane == nullptr) return {};
  const ForgetAnswer answer{kept_completion(lane) != nullptr};
  if (planted(Plant::forgotten_until_restart)) lane->forget_completion();
  void_lane(*lane);
  return answer;
}

CancelAnswer Rules::cancel(const CancelCommand& command) {  // S25
  Lane* lane = find_lane(command.lane.operation);
  if (lane == nullptr) return {};
  if (lane->hold.held() && lane->hold.who() == command.who) {
    if (lane->hold.claimed()) return {};
    fail(*lane, EventKind::expired, "cancelled", false);
    return {true};
  }
  Waiter* waiter = lane->has_waiters() ? lane->queue->find(command.who) : nullptr;
  if (waiter == nullptr) return {};
  leave_queue(*lane, *waiter, "cancelled");
  if (!planted(Plant::cancel_wakes_nobody)) advance();
  return {true};
}

// S39: what those who skip will be told. Where there is no room left the work is still done, and whoever did
// it hears that its result is not kept: to refuse the unlock would make others do it again.
KeptResult Rules::take_result(const Lane& lane, const UnlockCommand& command, UnlockAnswer& answer) {
  if (command.result.empty() || lane.rules().on_success != OnSuccess::share) return {};
  const uint64_t others = counters_.result_bytes.load(std::memory_order_relaxed);
  answer.result_dropped = others + command.result.size() > settings_.max_result_memory;
  return answer.result_dropped ? KeptResult() : KeptResult(command.result, counters_.result_bytes);
}

void Rules::succeed(Lane& lane, const UnlockCommand& command, UnlockAnswer& answer) {
  const OperationRules& rules = lane.rules();
  const bool shares = rules.on_success == OnSuccess::share;
  const NodeId node(out_.keep(lane.hold.node));
  const KeptResult result = take_result(lane, command, answer);
  EndedHold hold = end_hold(lane, EventKind::completed, {}, false,
                            answer.result_dropped ? std::string_view() : command.result);
  if (shares) {
    hold.node = SharedText(node.text);
    hold.result = result;
  }
  if (lane.failures > 0 && !planted(Plant::failures_outlive_success)) {
    lane.failures = 0;
    record_lane(RecordKind::failures_erased, lane);
  }
  if (lane.memory) lane.memory->last_error = SharedText();
  if (keeps_references()) {
    if (rules.references == OnReferences::add) insert_reference(node);
    if (rules.references == OnReferences::clear) clear_references();
  }
  if (rules.voids) void_other_lanes(lane);

  Duration keep = settings_.retain_completed;
  if (command.keep) answer.keep = keep = shares ? cut(*command.keep) : Duration(0);
  if (planted(Plant::keep_ignored)) keep = settings_.retain_completed;
  if (shares && keep > Duration(0)) {
    lane.keep_completion({SharedText(), later(now_, keep), true, false, hold});
    record(completion_record(lane));
  } else if (lane.completion) {
    lane.forget_completion();
    record_lane(RecordKind::completion_erased, lane);
  }
  if (shares) end_queue(lane, Ending::skipped, {}, hold);  // S10: all at once
  if (!planted(Plant::success_wakes_nobody)) advance();
}

// S12, and the path of every other end that is not a success.
void Rules::fail(Lane& lane, EventKind kind, std::string_view text, bool permanent) {
  const EndedHold hold = end_hold(lane, kind, text, permanent);
  const SharedText error(text);
  if (lane.has_waiters() && !permanent) {
    if (!planted(Plant::attempts_not_counted)) ++lane.failures;
    lane.remember().last_error = error;
    record(failures_record(lane));
  }
  const bool kept = permanent && settings_.retain_permanent_failure > Duration(0);
  if (kept) {
    lane.keep_completion({error, later(now_, settings_.retain_permanent_failure), false, true, hold});
    lane.completion->hold.node = SharedText(out_.events.back().who.node.text);
    record(completion_record(lane));
  } else if (lane.completion) {
    lane.forget_completion();
    record_lane(RecordKind::completion_erased, lane);
  }
  if (permanent && !planted(Plant::permanent_failure_ends_nobody))
    end_queue(lane, Ending::failed, error, hold);
  advance();
}

EndedHold Rules::end_hold(Lane& lane, EventKind kind, std::string_view error, bool permanent,
                          std::string_view result) {
  TS_CHECK(lane.hold.held(), "only a hold can end");
  Event event = event_of(kind, lane, lane.hold.who());
  event.token = lane.hold.token;
  event.attempt = lane.hold.attempt;
  event.permanent = permanent;
  event.error = out_.keep(error);
  event.result = out_.keep(result);
  if (kind == EventKind::expired || kind == EventKind::broken) event.reason = event.error;
  out_.events.push_back(event);
  measure(MeasureKind::ended, lane, now_ - lane.hold.since);
  record_lane(RecordKind::hold_erased, lane);
  drop_connection_bonds(lane, event.who);
  lane.hold = Hold();
  return {.token = event.token, .attempt = event.attempt, .at = now_};
}

// S13: after a delete, a pull really pulls.
void Rules::void_other_lanes(const Lane& lane) {
  for_each_lane([&](Lane& other) {
    if (&other != &lane) void_lane(other);
  });
}

// Neither its completion nor the skips that came of it count any more.
void Rules::void_lane(Lane& lane) {
  if (lane.completion) {
    lane.forget_completion();
    record_lane(RecordKind::completion_erased, lane);
  }
  if (!lane.memory) return;
  bool voided = lane.memory->endings && lane.memory->endings->erase_skips();
  for (EndedQueue* ended = lane.memory->ended.get(); ended != nullptr; ended = ended->next.get()) {
    if (ended->ending.how != Ending::skipped || planted(Plant::untold_skips_survive)) continue;
    ended->ending.until = Time{};
    voided = !planted(Plant::untold_voids_forgotten) || voided;
  }
  if (!voided) return;
  // Not those that come later: a snapshot may have them when this is replayed over it. Time alone does not
  // tell them apart, two steps can have the same; the holds that end this lane's queues from now on do.
  Record gone = fact(RecordKind::endings_voided, &lane);
  gone.until = later(now_, settings_.claim_timeout);
  gone.number = lane.hold.held() ? uint64_t(lane.hold.token) : counters_.tokens.load() + 1;
  record(gone);
}

// A wait ends without a grant. Whoever is there is told; for the others it is remembered (S2).
void Rules::end_wait(Lane& lane, const Waiter& waiter, Ending how, const Admission& why) {
  const std::unique_ptr<Waiter> ended = lane.queue->remove(waiter);
  const Requester who = keep(ended->who());
  record_lane(RecordKind::waiter_erased, lane, ended->ticket);
  measure(MeasureKind::left_queue, lane);
  measure(how == Ending::skipped ? MeasureKind::skipped : MeasureKind::refused, lane);
  drop_connection_bonds(lane, who);
  if (settings_.claim_timeout > Duration(0)) {
    const Endings::Entry entry{how, why.error, later(now_, settings_.claim_timeout), why.hold};
    endings_of(lane).set(who, entry);
    record(ending_record(RecordKind::ending_set, lane, who, entry));
  }
  // S17: the reference comes with the answer to somebody who is there.
  if (how == Ending::skipped && !ended->polls.empty() && lane.rules().references == OnReferences::add)
    insert_reference(who.node);
  for (PollId poll : ended->polls) {
    Wake wake;
    wake.poll = poll;
    wake.answer.state = how == Ending::skipped   ? LockState::skipped
                        : how == Ending::refused ? LockState::refused
                                                 : LockState::failed;
    wake.answer.refusal = how == Ending::skipped ? Refusal::none : why.refusal;
    wake.answer.error = keep(why.error);
    wake.answer.references = why.references;
    if (how == Ending::skipped) wake.answer.done = done_view(why.hold);
    out_.wakes.push_back(wake);
  }
}

// Cancelled, or its bonds are gone.
void Rules::leave_queue(Lane& lane, const Waiter& waiter, std::string_view reason) {
  has_left(lane, *lane.queue->remove(waiter), reason);
}

void Rules::has_left(Lane& lane, const Waiter& left, std::string_view reason) {
  const Requester who = keep(left.who());
  record_lane(RecordKind::waiter_erased, lane, left.ticket);
  measure(MeasureKind::left_queue, lane);
  drop_connection_bonds(lane, who);
  Event event = event_of(EventKind::cancelled, lane, who);
  event.reason = out_.keep(reason);
  out_.events.push_back(event);
  for (PollId poll : left.polls) {
    Wake wake;
    wake.poll = poll;
    wake.answer.state = LockState::cancelled;
    out_.wakes.push_back(wake);
  }
}

// Lets go whom S3 lets go, oldest first. One look at each lane is enough, also where thousands of them wait
// for one hold: no hold ends here, so the first who may not go stays, and with him all behind him.
void Rules::advance() {
  leave_overdue();
  bool holds = false, holds_whole = false;                            // whole: with scope `resource`
  uint64_t first_stays = UINT64_MAX, first_whole_stays = UINT64_MAX;  // tickets, behind holds
  const auto hold_back = [&](const Lane& lane) {
    holds = true;
    holds_whole = holds_whole || lane.hold.scope == Scope::resource;
    if (!lane.has_waiters()) return;
    first_stays = std::min(first_stays, lane.queue->front().ticket);
    if (!planted(Plant::scopes_of_waiters_ignored))
      first_whole_stays = std::min(first_whole_stays, lane.queue->first_resource_scope());
  };
  std::vector<Lane*> free;  // with waiters: a heap, the lane of the oldest one first
  for_each_lane([&](Lane& lane) {
    if (lane.hold.held())
      hold_back(lane);
    else if (lane.has_waiters())
      free.push_back(&lane);
  });
  const auto is_behind = [](const Lane* a, const Lane* b) {
    return a->queue->front().ticket > b->queue->front().ticket;
  };
  std::make_heap(free.begin(), free.end(), is_behind);
  while (!free.empty() && !holds_whole) {
    std::pop_heap(free.begin(), free.end(), is_behind);
    Lane& lane = *free.back();
    const Waiter& oldest = lane.queue->front();
    const bool whole = oldest.scope == Scope::resource;
    if (whole ? holds || first_stays < oldest.ticket : first_whole_stays < oldest.ticket) return;
    let_go(lane, oldest);
    if (lane.hold.held()) hold_back(lane);
    if (!lane.hold.held() && lane.has_waiters())
      std::push_heap(free.begin(), free.end(), is_behind);
    else
      free.pop_back();
  }
}

// It is granted, or S14 ends its wait.
void Rules::let_go(Lane& lane, const Waiter& waiter) {
  const Admission admission = admit(&lane, *lane.operation, waiter.who().node, waiter.dereference);  // S14
  switch (admission.state) {
    case LockState::acquired:
      grant_waiter(lane, waiter);
      break;
    case LockState::skipped:
      end_wait(lane, waiter, Ending::skipped, admission);
      break;
    case LockState::failed:
      end_wait(lane, waiter, Ending::failed, admission);
      break;
    default: {
      Event event = event_of(EventKind::refused, lane, waiter.who());
      event.error = "the resource is in use by other nodes";
      out_.events.push_back(event);
      Admission refused = admission;
      refused.error = SharedText(event.error);
      end_wait(lane, waiter, Ending::refused, refused);
    }
  }
}

void Rules::grant_waiter(Lane& lane, const Waiter& waiter) {
  const std::unique_ptr<Waiter> granted = lane.queue->remove(waiter);
  record_lane(RecordKind::waiter_erased, lane, granted->ticket);
  measure(MeasureKind::left_queue, lane);
  Hold hold;
  hold.node = std::move(granted->node);
  hold.request = std::move(granted->request);
  hold.scope = granted->scope;
  hold.lease_ms = uint32_t(to_ms(granted->lease));
  hold.monitor = granted->monitor;
  if (!granted->info.empty()) hold.extra().info = std::move(granted->info);
  grant(lane, std::move(hold), granted->since);

  Hold& own = lane.hold;
  const bool bonded = has_any_bond(lane, own.who());
  const bool claimed = bonded || !granted->polls.empty();
  if (!bonded && !planted(Plant::undelivered_stays_claimed))
    own.by_polls = uint16_t(std::min<size_t>(granted->polls.size(), UINT16_MAX));
  if (claimed) {
    start_deadline(own);
  } else {
    const bool silent = later(granted->heard_at, settings_.claim_timeout) <= now_;
    const bool brief = silent && !planted(Plant::silent_waiter_blocks);
    own.deadline = Deadline::unclaimed;
    own.until = later(now_, brief ? settings_.short_claim() : settings_.claim_timeout);  // S35
  }
  if (own.monitor && !bonded) {
    const bool grace_runs = granted->leaves_at != kNever;
    own.extra().bond_until = grace_runs ? granted->leaves_at : later(now_, settings_.bond_grace);
  }
  record_hold(lane);
  for (PollId poll : granted->polls) out_.wakes.push_back({poll, acquired_answer(lane)});
}

}  // namespace turnstile
