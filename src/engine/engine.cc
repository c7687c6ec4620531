#include "engine/engine.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "engine/engine_step.h"

namespace turnstile {

Engine::Engine(EngineSettings settings, CommitSink& sink, Token first_token)
    : settings_(std::move(settings)), sink_(&sink), operations_(settings_.operations) {
  counters_.raise_tokens(uint64_t(first_token));
  TS_CHECK(settings_.shards > 0, "there is at least one shard");
  for (uint32_t i = 0; i < settings_.shards; ++i) shards_.push_back(std::make_unique<Shard>());
  share_ = settings_.max_resources / shards_.size();
}

Engine::~Engine() = default;

Shard& Engine::shard_of(ResourceId id) { return *shards_[fnv1a_32(id.text) % shards_.size()]; }

// Each shard has its share of the limit. Only where it is used up all shards are counted, so that a request
// usually costs no more than a look at its own.
bool Engine::has_room_for(ResourceId id, const Shard& shard) const {
  if (shard.size() < share_) return true;
  return resource_count() < settings_.max_resources || shard.contains(id);
}

template <class Step>
auto Engine::with_resource(Shard& shard, ResourceId id, Time now, Effects& out, Step step) {
  return run_step(shard, shard.pin_or_create(id), now, out, std::move(step));
}

template <class Step>
auto Engine::with_known_resource(ResourceId id, Time now, Effects& out, Step step) {
  Shard& shard = shard_of(id);
  Resource* resource = shard.pin(id);
  if (resource != nullptr) return run_step(shard, *resource, now, out, std::move(step));
  // An unknown resource is an empty one: the same rules answer, on one that is thrown away.
  Resource nothing(id.text);
  Rules rules(settings_, counters_, false, nothing, now, out);
  auto answer = step(rules);
  TS_CHECK(nothing.empty() && out.events.empty(), "a look at an unknown resource changes nothing");
  out.sequence = sink_->latest();
  return answer;
}

// That there is no room tells of the state, too: another server may lead, in which there is (S42).
template <class Answer>
Answer Engine::full(Refusal refusal, Effects& out) const {
  out.sequence = sink_->latest();
  Answer answer;
  answer.refusal = refusal;
  return answer;
}

LockAnswer Engine::lock(const LockCommand& command, Time now, Effects& out) {
  const OperationUse operation = operations_.use(command.lane.operation.text);
  if (operation.get() == nullptr) return full<LockAnswer>(Refusal::too_many_operations, out);
  Shard& shard = shard_of(command.lane.resource);
  if (!has_room_for(command.lane.resource, shard)) return full<LockAnswer>(Refusal::too_many_resources, out);
  return with_resource(shard, command.lane.resource, now, out,
                       [&](Rules& rules) { return rules.lock(command, *operation.get()); });
}

UnlockAnswer Engine::unlock(const UnlockCommand& command, Time now, Effects& out) {
  return with_known_resource(command.lane.resource, now, out,
                             [&](Rules& rules) { return rules.unlock(command); });
}

RenewAnswer Engine::renew(const RenewCommand& command, Time now, Effects& out) {
  return with_known_resource(command.lane.resource, now, out,
                             [&](Rules& rules) { return rules.renew(command); });
}

CancelAnswer Engine::cancel(const CancelCommand& command, Time now, Effects& out) {
  return with_known_resource(command.lane.resource, now, out,
                             [&](Rules& rules) { return rules.cancel(command); });
}

StatusAnswer Engine::status(const StatusCommand& command, Time now, Effects& out) {
  return with_known_resource(command.lane.resource, now, out,
                             [&](Rules& rules) { return rules.status(command); });
}

BreakAnswer Engine::break_hold(const BreakCommand& command, Time now, Effects& out) {
  return with_known_resource(command.lane.resource, now, out,
                             [&](Rules& rules) { return rules.break_hold(command); });
}

ForgetAnswer Engine::forget(const ForgetCommand& command, Time now, Effects& out) {
  return with_known_resource(command.lane.resource, now, out,
                             [&](Rules& rules) { return rules.forget(command); });
}

ReferencesAnswer Engine::references(const ReferencesCommand& command, Effects& out) {
  return with_known_resource(command.resource, Time{}, out,
                             [&](Rules& rules) { return rules.references(command); });
}

ReferencesAnswer Engine::add_reference(const ReferenceCommand& command, Time now, Effects& out) {
  Shard& shard = shard_of(command.resource);
  if (settings_.server_keeps_references && !has_room_for(command.resource, shard))
    return full<ReferencesAnswer>(Refusal::too_many_resources, out);
  return with_resource(shard, command.resource, now, out,
                       [&](Rules& rules) { return rules.add_reference(command.node); });
}

ReferencesAnswer Engine::release_reference(const ReferenceCommand& command, Time now, Effects& out) {
  return with_known_resource(command.resource, now, out,
                             [&](Rules& rules) { return rules.release_reference(command.node); });
}

SubscribeAnswer Engine::subscribe(const SubscribeCommand& command, Time now, Effects& out,
                                  const std::function<void()>& at_position) {
  // Who only looks adds neither a name nor, for longer than the look, a resource.
  const bool bonds = !command.who.node.empty() && command.bond != BondId::none;
  const OperationUse operation = bonds ? operations_.use(command.lane.operation.text) : OperationUse();
  if (bonds && operation.get() == nullptr) return full<SubscribeAnswer>(Refusal::too_many_operations, out);
  Shard& shard = shard_of(command.lane.resource);
  if (bonds && !has_room_for(command.lane.resource, shard))
    return full<SubscribeAnswer>(Refusal::too_many_resources, out);
  return with_resource(shard, command.lane.resource, now, out, [&](Rules& rules) {
    at_position();
    return SubscribeAnswer{Refusal::none, rules.subscribe(command, operation.get())};
  });
}

void Engine::close_bond(const LaneName& lane, const Requester& who, BondId bond, Time now, Effects& out) {
  with_known_resource(lane.resource, now, out, [&](Rules& rules) {
    rules.close_bond(lane.operation, who, bond);
    return true;
  });
}

bool Engine::has_bond(const LaneName& lane, const Requester& who, BondId bond) {
  Effects none;
  return with_known_resource(lane.resource, Time{}, none,
                             [&](Rules& rules) { return rules.has_bond(lane.operation, who, bond); });
}

void Engine::break_poll(const LaneName& lane, const Requester& who, PollId poll, Time now, Effects& out) {
  with_known_resource(lane.resource, now, out, [&](Rules& rules) {
    rules.break_poll(lane.operation, who, poll);
    return true;
  });
}

std::optional<LockAnswer> Engine::end_poll(const LaneName& lane, const Requester& who, PollId poll, Time now,
                                           Effects& out) {
  return with_known_resource(lane.resource, now, out,
                             [&](Rules& rules) { return rules.end_poll(lane.operation, who, poll); });
}

void Engine::undelivered(const LaneName& lane, const Requester& who, Token token, Time now, Effects& out) {
  with_known_resource(lane.resource, now, out, [&](Rules& rules) {
    rules.undelivered(lane.operation, who, token);
    return true;
  });
}

void Engine::go_on(ResourceId resource, Time now, Effects& out) {
  with_known_resource(resource, now, out, [](Rules& rules) {
    rules.go_on();
    return true;
  });
}

size_t Engine::expire(Time now, Effects& out, size_t limit, const std::function<void(Effects&)>& after_step) {
  size_t looked_at = 0;
  for (const auto& shard : shards_) {
    if (looked_at >= limit) break;
    for (Resource* resource : shard->pin_due(now, limit - looked_at)) {
      ++looked_at;
      out.clear();
      run_step(*shard, *resource, now, out, [](Rules& rules) {
        rules.expire();
        return true;
      });
      after_step(out);
    }
  }
  return looked_at;
}

Time Engine::next_deadline() const {
  Time next = kNever;
  for (const auto& shard : shards_) next = std::min(next, shard->next_deadline());
  return next;
}

size_t Engine::resource_count() const {
  size_t count = 0;
  for (const auto& shard : shards_) count += shard->size();
  return count;
}

}  // namespace turnstile
