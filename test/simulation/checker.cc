#include "checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace turnstile::sim {
namespace {

using Calls = std::vector<const Call*>;

// A hold that a client was told of.
struct Grant {
  uint64_t token = 0;
  std::string type, resource, node, request;
  bool resource_scope = false;
  Time invoked{};            // not granted before,
  Time learned = kNever;     // and not after
  Time ends = kNever;        // not ended before, by anything;
  Time ends_alone = kNever;  // ... or by anything but an unlock
  bool claimed = false;      // an answer told of it, not an event alone

  std::string lane() const { return type + " " + resource; }
  std::string who() const { return node + "/" + request; }
};

bool conflict(const Grant& a, const Grant& b) {  // S7
  return a.type == b.type || a.resource_scope || b.resource_scope;
}

bool may_have_worked(const Call& call) { return !call.has_returned() || call.done; }
bool was_answered(const Call& call) { return call.has_returned() && call.status < 429; }

class Checker {
 public:
  explicit Checker(const Judged& what) : what_(what) {
    for (const Call& call : what.history.calls) by_resource_[call.resource].push_back(&call);
    find_grants();
    for (auto& [token, grant] : grants_) find_end(grant);
  }

  std::vector<std::string> run() {
    exclusion();
    tokens();
    for (const auto& [token, grant] : grants_)
      if (grant.claimed) kept(grant);
    released();
    unknown_grants();
    first_in_first_out();
    done_once();
    references();
    answers_before_events();
    streams();
    return std::move(violations_);
  }

  std::set<uint64_t> held_at(Time now) const {
    std::set<uint64_t> tokens;
    for (const auto& [token, grant] : grants_)
      if (grant.learned <= now && grant.ends > now) tokens.insert(token);
    return tokens;
  }

 private:
  template <class... Arguments>
  void violation(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    violations_.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  std::string show(const Call& call) const { return sim::show(call, what_.start); }
  std::string show(const Grant& grant) const {
    return fmt::format("token {} of {} [{}], told at {}, cannot have ended before {}", grant.token,
                       grant.lane(), grant.who(), at(grant.learned), at(grant.ends));
  }
  std::string at(Time time) const {
    return time == kNever ? "ever" : std::to_string((time - what_.start).count());
  }
  const Calls& calls_of(const std::string& resource) const {
    static const Calls none;
    const auto found = by_resource_.find(resource);
    return found == by_resource_.end() ? none : found->second;
  }

  void find_grants() {
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

  Grant& note(uint64_t token, const std::string& type, const std::string& resource, const std::string& node,
              const std::string& request, Time learned) {
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

  void find_end(Grant& grant) {
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
          const bool means_it =
              call->token != 0 ? call->token == grant.token && call->node == grant.node : own;
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

  // In the order of tokens each grant happens as early as it can: behind those before it that exclude it.
  void exclusion() {
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

  void tokens() {
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
  void kept(const Grant& grant) {
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

  bool may_be_unlocked_before(const Grant& grant, const Call& than) const {
    return std::ranges::any_of(calls_of(grant.resource), [&](const Call* call) {
      if (call == &than || call->kind != CallKind::unlock || call->type != grant.type) return false;
      if (!may_have_worked(*call) || call->invoked > than.returned) return false;
      return call->token != 0 ? call->token == grant.token : call->who() == grant.who();
    });
  }

  // What was released is released, once, and by its holder.
  void released() {
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
  void unknown_grants() {
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
  bool was_woken(const Grant& grant) const {
    const Time before = grant.learned - std::chrono::milliseconds(100);
    bool woken = false;
    for (const Call* call : calls_of(grant.resource)) {
      if (call->kind != CallKind::lock || call->type != grant.type || call->who() != grant.who()) continue;
      if (call->invoked > before && call->invoked <= grant.learned) return false;
      if (call->has_returned()) continue;
      if (call->wait.count() == 0) return false;
      woken = woken || (call->invoked <= before && call->link && call->link->lost_answer);
    }
    return woken && !what_.slow_disk;
  }

  // Whether its requester may have shown that it lives since.
  bool is_heard_of(const Grant& grant, Time latest) const {
    const bool by_calls = std::ranges::any_of(calls_of(grant.resource), [&](const Call* call) {
      if (call->type != grant.type || call->node != grant.node) return false;
      if (call->monitor) return true;
      if (call->kind == CallKind::cancel || call->kind == CallKind::unlock || call->invoked > latest)
        return false;
      const bool gone =
          call->link && std::min(call->link->client_closed, call->link->server_closed) < grant.learned;
      return !gone && (!call->has_returned() || call->returned > grant.learned);
    });
    return by_calls || std::ranges::any_of(what_.history.streams, [&](const SeenStream& stream) {
             return stream.node == grant.node;
           });
  }

  // Who was told that it waits, and stayed, is granted before whoever asks after that.
  void first_in_first_out() {
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
  Time waits_since(const Grant& grant) const {
    if (grant.type == "pull" || grant.type == "delete")
      return kNever;                            // a success ends a wait (S10), silently
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
      if (!call->has_returned() || (call->state != "queued" && call->told_token != grant.token))
        return kNever;
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

  // Whether the call can have taken effect after `from` began and before `to` was over.
  static bool may_be_between(const Call& call, Time from, Time to) {
    return call.invoked <= to && (!call.has_returned() || call.returned >= from);
  }
  bool is_success(const Call& call, std::string_view type) const {
    return call.kind == CallKind::unlock && call.type == type && call.success && may_have_worked(call);
  }

  // Work is done once: who comes later skips, until something has made it undone; and nobody skips what was
  // not done.
  void done_once() {
    for (const auto& [resource, calls] : by_resource_) {
      const Call* deleted = nullptr;  // the latest delete that surely was done
      for (const Call* call : calls) {
        if (call->kind != CallKind::lock || call->type != "pull" || !call->has_returned()) continue;
        deleted = nullptr;
        for (const Call* other : calls)
          if (is_success(*other, "delete") && other->has_returned() && !other->already &&
              other->returned < first_ask(*call) && (deleted == nullptr || other->invoked > deleted->invoked))
            deleted = other;
        if (call->state == "skipped") skipped(*call, calls, deleted);
        if (call->state == "acquired") pulled_again(*call, calls);
      }
    }
  }

  // When its requester first asked.
  Time first_ask(const Call& call) const {
    for (const Call* other : calls_of(call.resource))
      if (other->kind == CallKind::lock && other->type == call.type && other->who() == call.who())
        return other->invoked;
    return call.invoked;
  }

  void skipped(const Call& call, const Calls& calls, const Call* deleted) {
    const Time from = deleted != nullptr ? deleted->invoked : what_.start;
    for (const Call* other : calls) {
      if (other == &call || !may_be_between(*other, from, call.returned)) continue;
      if (is_success(*other, "pull")) return;
      if (other->kind == CallKind::add_reference && (!other->has_returned() || other->status == 200)) return;
      // Who skips uses the content, too. Its own reason was looked at when it did.
      if (deleted != nullptr && other->kind == CallKind::lock && other->type == "pull" &&
          (!other->has_returned() || (other->state == "skipped" && other->returned < call.returned)))
        return;
      if (deleted != nullptr && other->kind == CallKind::status && other->type == "pull" &&
          !other->node.empty())
        return;
    }
    violation("skipped what nobody has done{}: {}", deleted != nullptr ? " since it was deleted" : "",
              show(call));
  }

  void pulled_again(const Call& call, const Calls& calls) {
    const auto found = grants_.find(call.told_token);
    if (found == grants_.end() || found->second.learned != call.returned) return;
    const Grant& grant = found->second;
    for (const Call* done : calls) {
      if (!is_success(*done, "pull") || !done->has_returned() || done->already || done->token == 0) continue;
      if (done->returned >= grant.invoked || done->token == grant.token) continue;
      if (std::min(later(done->invoked, what_.settings.retain_completed), what_.clock_set) <= call.returned)
        continue;
      const bool undone = std::ranges::any_of(calls, [&](const Call* other) {
        if (!may_be_between(*other, done->invoked, call.returned)) return false;
        if (is_success(*other, "delete") || is_success(*other, "update")) return true;
        return other->kind == CallKind::unlock && other->type == "pull" && other != done &&
               may_have_worked(*other);
      });
      if (!undone) violation("done twice: {}; and then {}", show(*done), show(call));
    }
  }

  // The set of nodes that use a resource is what was acknowledged.
  void references() {
    if (!what_.settings.server_keeps_references) return;
    for (const auto& [resource, calls] : by_resource_)
      for (const Call* look : calls)
        if (look->kind == CallKind::references && look->has_returned() && look->status == 200 &&
            !look->more_nodes)
          for (const std::string& node : nodes_of(calls)) reference(*look, node, calls);
  }

  std::set<std::string> nodes_of(const Calls& calls) const {
    std::set<std::string> nodes;
    for (const Call* call : calls)
      if (!call->node.empty()) nodes.insert(call->node);
    return nodes;
  }

  static bool adds(const Call& call, const std::string& node) {
    if (call.node != node) return false;
    if (call.kind == CallKind::add_reference) return !call.has_returned() || call.status == 200;
    if (call.type != "pull") return false;
    if (call.kind == CallKind::unlock) return call.success && may_have_worked(call) && !call.already;
    if (call.kind == CallKind::lock) return !call.has_returned() || call.state == "skipped";
    return call.kind == CallKind::status;  // it may tell of a skip
  }
  static bool drops(const Call& call, const std::string& node) {
    if (call.kind == CallKind::unlock && call.type == "delete")
      return call.success && may_have_worked(call) && !call.already;
    if (call.node != node) return false;
    if (call.kind == CallKind::lock && call.type == "delete") return call.dereference;
    return call.kind == CallKind::release_reference || call.kind == CallKind::release_node;
  }
  // Of those that may add, the ones that did.
  static bool surely_adds(const Call& call) {
    return call.has_returned() && call.status == 200 && call.kind != CallKind::status;
  }
  static bool surely_drops(const Call& call) {
    return call.has_returned() && call.status == 200 && call.kind != CallKind::lock;
  }

  void reference(const Call& look, const std::string& node, const Calls& of_resource) {
    Calls calls = of_resource;
    for (const Call* call : calls_of("")) calls.push_back(call);  // release_node names no resource
    const bool listed = std::ranges::find(look.nodes, node) != look.nodes.end();
    for (const Call* call : calls) {
      if (!call->has_returned() || call->returned >= look.invoked) continue;
      const bool added = adds(*call, node) && surely_adds(*call);
      const bool dropped = drops(*call, node) && surely_drops(*call);
      if (!(listed ? dropped : added)) continue;
      const bool undone = std::ranges::any_of(calls, [&](const Call* other) {
        if (other == call || other->invoked > look.returned) return false;
        if (!listed && deletes_node(*other, node)) return true;
        if (!may_be_between(*other, call->invoked, look.returned)) return false;
        return listed ? adds(*other, node) : drops(*other, node);
      });
      if (!undone)
        violation("a reference of {} was {}: {}; but {}", node, listed ? "kept" : "lost", show(*call),
                  show(look));
    }
  }
  // A waiter's dereference is applied again when its turn comes (S19), whenever that is.
  static bool deletes_node(const Call& call, const std::string& node) {
    return call.type == "delete" && call.node == node && call.dereference;
  }

  // S30. Of several answers that tell of one step the first counts: one of them was caused by it.
  void answers_before_events() {
    std::map<std::pair<uint64_t, std::string>, const Call*> answers;
    const auto note = [&](uint64_t token, const char* event, const Call& call) {
      const Call*& first = answers[{token, event}];
      if (first == nullptr || call.stamp < first->stamp) first = &call;
    };
    std::set<uint64_t> waited_for;  // tokens that may have been granted by another's step
    for (const Call& call : what_.history.calls) {
      if (!call.has_returned()) continue;
      if (call.kind == CallKind::unlock && call.done && !call.already && call.token != 0)
        note(call.token, call.success ? "completed" : "failed", call);
      if (call.kind != CallKind::lock || call.state != "acquired") continue;
      note(call.told_token, "granted", call);
      if (call.wait.count() > 0 || has_waited(call)) waited_for.insert(call.told_token);
    }
    for (const uint64_t token : waited_for) answers.erase({token, "granted"});
    for (const SeenStream& stream : what_.history.streams)
      for (const SeenEvent& event : stream.events) {
        if (is_state(stream, event)) continue;
        const auto answer = answers.find({event.token, event.kind});
        if (answer != answers.end() && event.stamp < answer->second->stamp)
          violation("an event overtook its answer (S30): {} {} token {}, before {}", event.kind,
                    event.resource, event.token, show(*answer->second));
      }
  }

  // Whether another request of this requester was, or may have been, queued before.
  bool has_waited(const Call& call) const {
    return std::ranges::any_of(calls_of(call.resource), [&](const Call* other) {
      return other != &call && other->kind == CallKind::lock && other->lane() == call.lane() &&
             other->who() == call.who() && other->invoked <= call.returned &&
             (!other->has_returned() || other->state == "queued" || other->status >= 500);
    });
  }

  // Told because of the subscription, not because it happened then.
  static bool is_state(const SeenStream& stream, const SeenEvent& event) {
    const bool reset = !stream.events.empty() && stream.events.front().reset;
    return event.id == 0 || (event.stamp == stream.first_stamp && (stream.after == 0 || reset));
  }

  // S28: ids grow, an id means one event, and what others saw in between was not left out.
  void streams() {
    std::map<uint64_t, const SeenEvent*> all;
    for (const SeenStream& stream : what_.history.streams) {
      for (const SeenEvent& event : stream.events) {
        if (event.reset || is_state(stream, event)) continue;
        const auto [known, fresh] = all.emplace(event.id, &event);
        if (!fresh && (known->second->kind != event.kind || known->second->token != event.token))
          violation("one id, two events: {} is {} {} and {} {}", event.id, known->second->kind,
                    known->second->token, event.kind, event.token);
      }
    }
    for (const SeenStream& stream : what_.history.streams) {
      uint64_t last = stream.after;
      bool missed = stream.after == 0;  // what came before it began is not owed
      for (const SeenEvent& event : stream.events) {
        if (event.id == 0) continue;
        if (event.id <= last) violation("event ids went back: {} behind {}", event.id, last);
        if (event.reset) missed = true;
        if (!missed) owed(stream, all, last, event.id);
        if (!event.reset) missed = false;
        last = event.id;
      }
      const bool open = stream.link->loop != nullptr && stream.link->remote != nullptr;
      if (open && stream.link->reads && last != 0 && !missed) owed(stream, all, last, UINT64_MAX);
    }
  }

  void owed(const SeenStream& stream, const std::map<uint64_t, const SeenEvent*>& all, uint64_t after,
            uint64_t before) {
    for (auto event = all.upper_bound(after); event != all.end() && event->first < before; ++event) {
      const SeenEvent& seen = *event->second;
      if (!stream.resource.empty() && (stream.resource != seen.resource || stream.type != seen.type))
        continue;
      violation("an event was left out: {} {} {} id {} between {} and {} (stream opened at {})", seen.kind,
                seen.type, seen.resource, seen.id, after, before, at(stream.opened));
      return;
    }
  }

  const Judged& what_;
  std::map<std::string, Calls> by_resource_;
  std::map<uint64_t, Grant> grants_;  // by token
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> judge(const Judged& what) { return Checker(what).run(); }

std::set<uint64_t> must_be_held(const Judged& what, Time now) { return Checker(what).held_at(now); }

}  // namespace turnstile::sim
