// Which holds clients were told of, and between which moments each of them surely was one.
#include <algorithm>

#include "checks.h"

namespace turnstile::sim {

void Checker::find_grants() {
  for (const Call& call : what_.history.calls) {
    const bool told = (call.kind == CallKind::lock && call.state == "acquired") ||
                      (call.kind == CallKind::status && !call.node.empty() && call.told_token != 0);
    if (!told || !call.has_returned()) continue;
    Grant& grant = note(call.told_token, call.type, call.resource, call.node, call.request, call.returned);
    grant.claimed = true;
  }
  for (const SeenStream& stream : what_.history.streams)
    for (const SeenEvent& event : stream.events)
      if (event.kind == "granted" && event.token != 0)
        note(event.token, event.type, event.resource, event.node, event.request, event.seen);
  // A requester's first request that may have led to it, and to no grant before it.
  std::map<std::string, Time> before;  // when the grant before was asked for
  for (auto& [token, grant] : grants_) {
    const std::string key = grant.lane() + " " + grant.who();
    grant.invoked = what_.start;
    bool first = true, same_scope = true;
    for (const Call* call : calls_of(grant.resource)) {
      if (call->kind != CallKind::lock || call->type != grant.type || call->who() != grant.who()) continue;
      if (call->invoked > grant.learned || (call->told_token != 0 && call->told_token < token)) continue;
      if (call->has_returned() && call->returned < before[key]) continue;
      if (std::exchange(first, false)) {
        grant.invoked = call->invoked;
        grant.resource_scope = call->resource_scope;
      }
      same_scope = same_scope && call->resource_scope == grant.resource_scope;
    }
    if (!same_scope) grant.resource_scope = false;
    before[key] = grant.invoked;
  }
}

Grant& Checker::note(uint64_t token, const std::string& type, const std::string& resource,
                     const std::string& node, const std::string& request, Time learned) {
  Grant& grant = grants_[token];
  if (grant.token == 0) {
    grant.token = token;
    grant.type = type;
    grant.resource = resource;
    grant.node = node;
    grant.request = request;
  } else if (grant.type != type || grant.resource != resource || grant.node != node ||
             grant.request != request) {
    violation("two holds have token {}: {} [{}], and {} {} [{}/{}]", token, grant.lane(), grant.who(), type,
              resource, node, request);
  }
  grant.learned = std::min(grant.learned, learned);
  return grant;
}

void Checker::find_end(Grant& grant) {
  const EngineSettings& settings = what_.settings;
  Time unlocked = kNever, other = kNever;
  Duration lease = Duration::max();
  Time alive = grant.invoked;  // the latest moment at which its time began anew, at the earliest
  bool monitored = false, plain = false;
  const auto ends_by = [&](Time& end, Time time) { end = std::min(end, std::max(time, grant.invoked)); };
  for (const Call* call : calls_of(grant.resource)) {
    if (call->type != grant.type || (call->has_returned() && call->returned < grant.invoked)) continue;
    const bool own = call->who() == grant.who();
    switch (call->kind) {
      case CallKind::unlock: {
        const bool means_it = call->token != 0 ? call->token == grant.token && call->node == grant.node : own;
        if (means_it && may_have_worked(*call)) ends_by(unlocked, call->invoked);
        break;
      }
      case CallKind::break_hold:
        if (may_have_worked(*call)) ends_by(other, call->invoked);
        break;
      case CallKind::cancel:
        if (own && may_have_worked(*call)) ends_by(other, call->invoked);
        break;
      case CallKind::lock:
      case CallKind::status:
      case CallKind::renew: {
        if (!own) break;
        if (call->kind != CallKind::status && call->lease.count() > 0) lease = std::min(lease, call->lease);
        if (call->kind == CallKind::lock && call->lease.count() == 0) plain = true;
        if (call->kind == CallKind::lock && call->monitor) {
          monitored = true;
          if (call->link) ends_by(other, std::min(call->link->client_closed, call->link->server_closed));
        }
        if (call->progress && settings.stall_timeout.count() > 0)
          ends_by(other, call->invoked + settings.stall_timeout);
        const bool alive_then = (call->told_token == grant.token && call->kind == CallKind::lock) ||
                                (call->kind == CallKind::renew && call->token == grant.token && call->done);
        if (call->has_returned() && alive_then) alive = std::max(alive, call->invoked);
        break;
      }
      default:
        break;
    }
  }
  if (monitored)
    for (const Time time : what_.take_overs)
      if (time >= grant.invoked) ends_by(other, time);
  if (monitored)
    for (const SeenStream& stream : what_.history.streams)
      if (stream.type == grant.type && stream.resource == grant.resource && stream.node == grant.node &&
          stream.request == grant.request)
        ends_by(other, std::min(stream.link->client_closed, stream.link->server_closed));
  if (lease != Duration::max()) ends_by(other, later(alive, lease));
  if ((plain || lease == Duration::max()) && settings.max_hold.count() > 0)
    ends_by(other, std::min(later(grant.invoked, settings.max_hold), what_.clock_set));
  if (!grant.claimed)
    ends_by(other, grant.invoked + std::min(settings.short_claim(), settings.claim_timeout));
  grant.ends_alone = other;
  grant.ends = std::min(unlocked, other);
}

}  // namespace turnstile::sim
