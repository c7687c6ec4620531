// Exclusion, tokens, what was told and must still be so, and the order of waiters.
#include <algorithm>

#include "checks.h"

namespace turnstile::sim {

// S47. That it was so when etcd confirmed it is no excuse: whoever is told believes it from now on. (403 says
// only how the server is set up.)
void Checker::late_answers() {
  for (const Call& call : what_.history.calls)
    if (was_answered(call) && call.status != 403 && what_.history.late.contains(call.stamp))
      violation("told by a leader that had slept for longer than its lease: {}", show(call));
}

// In the order of tokens each grant happens as early as it can: behind those before it that exclude it.
void Checker::exclusion() {
  std::map<std::string, std::vector<std::pair<const Grant*, Time>>> placed;  // by resource; when it ended
  for (const auto& [token, grant] : grants_) {
    Time earliest = grant.invoked;
    const Grant* in_the_way = nullptr;
    for (const auto& [before, ended] : placed[grant.resource]) {
      if (!conflict(*before, grant) || ended <= earliest) continue;
      earliest = ended;
      in_the_way = before;
    }
    if (earliest > grant.learned) violation("two holders: {}; and {}", show(*in_the_way), show(grant));
    placed[grant.resource].emplace_back(&grant, std::max(earliest, grant.ends));
  }
}

void Checker::tokens() {
  std::vector<const Grant*> by_learned, by_invoked;
  for (const auto& [token, grant] : grants_) by_learned.push_back(&grant);
  by_invoked = by_learned;
  std::ranges::sort(by_learned, {}, &Grant::learned);
  std::ranges::sort(by_invoked, {}, &Grant::invoked);
  const Grant* highest = nullptr;
  size_t next = 0;
  for (const Grant* grant : by_invoked) {
    for (; next < by_learned.size() && by_learned[next]->learned < grant->invoked; ++next)
      if (highest == nullptr || by_learned[next]->token > highest->token) highest = by_learned[next];
    if (highest != nullptr && highest->token > grant->token)
      violation("a token went back: {}; then {}", show(*highest), show(*grant));
  }
}

// What was told is so until it can have ended: nothing acknowledged is lost.
void Checker::kept(const Grant& grant) {
  for (const Call* call : calls_of(grant.resource)) {
    if (call->type != grant.type || !was_answered(*call) || call->invoked < grant.learned) continue;
    const bool own = call->who() == grant.who();
    const bool in_time = call->returned < grant.ends;
    bool holds = true;
    if (call->kind == CallKind::status && in_time) holds = call->holder_token == grant.token;
    if (call->kind == CallKind::lock && own && in_time) holds = call->told_token == grant.token;
    if (call->kind == CallKind::renew && own && call->token == grant.token && in_time) holds = call->done;
    if (call->kind == CallKind::unlock && call->token == grant.token && call->node == grant.node &&
        call->returned < grant.ends_alone && !may_be_unlocked_before(grant, *call))
      holds = call->done;
    if (!holds) violation("a hold was forgotten: {}; but {}", show(grant), show(*call));
  }
}

bool Checker::may_be_unlocked_before(const Grant& grant, const Call& than) const {
  return std::ranges::any_of(calls_of(grant.resource), [&](const Call* call) {
    if (call == &than || call->kind != CallKind::unlock || call->type != grant.type) return false;
    if (!may_have_worked(*call) || call->invoked > than.returned) return false;
    return call->token != 0 ? call->token == grant.token : call->who() == grant.who();
  });
}

// What was released is released, once, and by its holder.
void Checker::released() {
  std::map<uint64_t, const Call*> first;
  for (const Call& call : what_.history.calls) {
    if (call.kind != CallKind::unlock || !call.has_returned() || !call.done || call.token == 0) continue;
    if (const auto grant = grants_.find(call.token);
        grant != grants_.end() && grant->second.node != call.node)
      violation("released by somebody else: {}; by {}", show(grant->second), show(call));
    if (call.already) continue;
    const auto [before, fresh] = first.emplace(call.token, &call);
    if (!fresh) violation("released twice: {}; and {}", show(*before->second), show(call));
  }
  for (const auto& [token, unlock] : first) {
    for (const Call* call : calls_of(unlock->resource)) {
      if (call->invoked < unlock->returned || !call->has_returned() || call->type != unlock->type) continue;
      const bool held = (call->kind == CallKind::status && call->holder_token == token) ||
                        (call->kind == CallKind::lock && call->told_token == token) ||
                        (call->kind == CallKind::renew && call->token == token && call->done);
      if (held) violation("a release was forgotten: {}; but {}", show(*unlock), show(*call));
    }
  }
}

// A grant that nobody was told of is given to somebody else in time (S14, S36).
void Checker::unknown_grants() {
  std::map<uint64_t, Time> ended;
  for (const SeenStream& stream : what_.history.streams)
    for (const SeenEvent& event : stream.events)
      if (event.kind == "expired" || event.kind == "broken" || event.kind == "failed" ||
          event.kind == "completed")
        ended.emplace(event.token, event.seen);
  for (const auto& [token, grant] : grants_) {
    const Time latest = grant.learned + what_.settings.claim_timeout + std::chrono::seconds(4);
    if (grant.claimed || !was_woken(grant) || is_heard_of(grant, latest)) continue;
    const bool disturbed = std::ranges::any_of(what_.disturbances, [&](const Disturbance& each) {
      return each.to >= grant.invoked && each.from <= latest;
    });
    if (disturbed) continue;
    const auto end = ended.find(token);
    if (end == ended.end() || end->second > latest)
      violation("a grant that nobody knew of was kept: {}; its end was told at {}", show(grant),
                end == ended.end() ? "ever" : at(end->second));
  }
}

// Whether it went to a long poll that was open, and its answer never left. What was handed to the kernel
// may be lost without anybody noticing, and a hold of the simplest kind then lasts as long as any (S23).
bool Checker::was_woken(const Grant& grant) const {
  const Time before = grant.learned - std::chrono::milliseconds(100);
  bool woken = false;
  for (const Call* call : calls_of(grant.resource)) {
    if (call->kind != CallKind::lock || call->type != grant.type || call->who() != grant.who()) continue;
    if (call->invoked > before && call->invoked <= grant.learned) return false;
    if (call->has_returned()) continue;
    if (call->wait.count() == 0) return false;
    const bool open_by_then =
        call->invoked <= before && std::ranges::none_of(what_.history.calls, [&](const Call& other) {
          return other.link == call->link && other.number < call->number &&
                 other.returned > before;  // still before it
        });
    woken = woken || (open_by_then && !call->answer_left());
  }
  return woken && !what_.slow_disk;
}

// Whether its requester may have shown that it lives since.
bool Checker::is_heard_of(const Grant& grant, Time latest) const {
  const bool by_calls = std::ranges::any_of(calls_of(grant.resource), [&](const Call* call) {
    if (call->type != grant.type || call->node != grant.node) return false;
    if (call->monitor) return true;
    if (call->kind == CallKind::cancel || call->kind == CallKind::unlock || call->invoked > latest)
      return false;
    const bool gone =
        call->link && std::min(call->link->client_closed, call->link->server_closed) < grant.learned;
    return !gone && (!call->has_returned() || call->returned > grant.learned);
  });
  return by_calls || std::ranges::any_of(what_.history.streams,
                                         [&](const SeenStream& stream) { return stream.node == grant.node; });
}

// Who was told that it waits, and stayed, is granted before whoever asks after that.
void Checker::first_in_first_out() {
  std::map<std::string, std::vector<std::pair<const Grant*, Time>>>
      by_lane;  // when its first request was sent
  for (const auto& [token, grant] : grants_)
    if (grant.claimed) by_lane[grant.lane()].emplace_back(&grant, grant.invoked);
  for (const auto& [lane, grants] : by_lane) {
    for (const auto& [older, sent] : grants) {
      const Time queued = waits_since(*older);
      if (queued == kNever) continue;
      for (const auto& [younger, asked] : grants)
        if (younger->token < older->token && younger->who() != older->who() && asked > queued)
          violation("overtaken: {} waited since {}; but {} asked at {}", show(*older), at(queued),
                    show(*younger), at(asked));
    }
  }
}

// Since when the requester is known to have waited for this grant without a break; never: not known.
Time Checker::waits_since(const Grant& grant) const {
  // A success ends a wait (S10), silently.
  if (grant.type == "pull" || grant.type == "delete" || grant.type == "once") return kNever;
  for (const auto& [token, other] : grants_)  // an earlier one may have run out without its knowing
    if (token < grant.token && other.lane() == grant.lane() && other.who() == grant.who()) return kNever;
  Time queued = kNever, last = kNever;
  for (const Call* call : calls_of(grant.resource)) {
    if (call->type == grant.type && call->kind == CallKind::unlock && call->permanent &&
        may_be_between(*call, grant.invoked, grant.learned))
      return kNever;  // and so does a failure for good (S12)
    if (call->type != grant.type || call->who() != grant.who()) continue;
    if (call->invoked < grant.invoked || call->invoked > grant.learned) continue;
    if (call->kind == CallKind::cancel || call->kind == CallKind::unlock) return kNever;
    if (call->kind != CallKind::lock) continue;
    if (!call->has_returned() || (call->state != "queued" && call->told_token != grant.token)) return kNever;
    if (call->link && std::min(call->link->client_closed, call->link->server_closed) < grant.learned)
      return kNever;
    if (last != kNever && call->invoked > last + std::chrono::milliseconds(200)) return kNever;
    if (queued == kNever && call->state == "queued") queued = call->returned;
    last = last == kNever ? call->returned : std::max(last, call->returned);
  }
  for (const SeenStream& stream : what_.history.streams)  // a bond that broke makes a waiter leave
    if (stream.node == grant.node &&
        std::min(stream.link->client_closed, stream.link->server_closed) < grant.learned)
      return kNever;
  for (const Disturbance& disturbance : what_.disturbances)
    if (disturbance.to >= grant.invoked && disturbance.from <= grant.learned) return kNever;
  return queued;
}

}  // namespace turnstile::sim
