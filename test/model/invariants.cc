// The invariants one by one. Nothing here knows a rule other than what conflicts with what (S7).
#include "invariants.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnstile::model {
namespace {

bool conflicts(const std::string& operation_a, Scope a, const std::string& operation_b, Scope b) {
  return operation_a == operation_b || a == Scope::resource || b == Scope::resource;
}

}  // namespace

void Invariants::asked(const Lane& lane, const Who& who, Scope scope, uint64_t poll,
                       const PlainLock& answer) {
  new_scope_[lane] = scope;
  if (answer.state != LockState::queued) return;
  if (poll != 0) polls_[poll] = {lane, who};
  auto& queue = queues_[lane];
  if (std::ranges::find(queue, who, &Waiting::who) == queue.end())
    queue.push_back({who, scope, ++last_ticket_});
}

std::string Invariants::step(const Step& step) {
  for (const PlainEvent& event : step.events) {
    const std::string broken = event.kind == EventKind::granted ? granted(event) : ended(event);
    if (!broken.empty()) return broken;
  }
  for (const PlainWake& wake : step.wakes)
    if (polls_.erase(wake.poll) == 0 && owed_.erase(wake.poll) == 0)
      return fmt::format("poll {} is not open and was woken", wake.poll);
  return "";
}

std::string Invariants::granted(const PlainEvent& event) {
  if (event.token <= last_token_) return fmt::format("token {} is not above {}", event.token, last_token_);
  last_token_ = event.token;

  Scope scope = new_scope_[event.lane];
  const auto& queue = queues_[event.lane];
  if (const auto waiting = std::ranges::find(queue, event.who, &Waiting::who); waiting != queue.end()) {
    scope = waiting->scope;
    uint64_t& latest = granted_ticket_[event.lane];
    if (waiting->ticket < latest) return "a later waiter was granted first";
    latest = waiting->ticket;
    ++outcomes_[event.lane][event.who];
  }
  for (const auto& [lane, held] : holds_)
    if (lane.resource == event.lane.resource &&
        conflicts(lane.operation, held.scope, event.lane.operation, scope))
      return fmt::format("{} was granted while {} holds {}", event.who.node, held.who.node, lane.operation);
  holds_[event.lane] = {event.who, scope, event.token};
  return "";
}

std::string Invariants::ended(const PlainEvent& event) {
  if (event.kind == EventKind::cancelled || event.kind == EventKind::refused) {
    const auto& queue = queues_[event.lane];
    if (std::ranges::find(queue, event.who, &Waiting::who) == queue.end())
      return "an outcome for nobody who waits";
    ++outcomes_[event.lane][event.who];
    return "";
  }
  const auto held = holds_.find(event.lane);
  if (held == holds_.end()) return "a hold has ended that was not there";
  if (held->second.token != event.token || held->second.who != event.who) return "another's hold has ended";
  holds_.erase(held);
  return "";
}

std::string Invariants::after(const std::vector<PlainStatus>& lanes) {
  for (const PlainStatus& status : lanes) {
    const auto held = holds_.find(status.lane);
    if ((held != holds_.end()) != status.holder.has_value()) return "the holder is not who was granted last";
    if (status.holder &&
        (held->second.token != status.holder->token || held->second.who != status.holder->who))
      return "the status tells another holder than the events";
    const std::string broken = left(status.lane, status);
    if (!broken.empty()) return broken;
  }
  return lanes.empty() ? "" : nobody_could_go(lanes[0].lane.resource);
}

// Who is no longer queued has had one outcome, told once; who still is has had none, and nobody overtook it.
std::string Invariants::left(const Lane& lane, const PlainStatus& status) {
  std::vector<Waiting> still;
  for (const Waiting& waiting : queues_[lane]) {
    const int outcomes = outcomes_[lane][waiting.who];
    // Both in the order of queueing: the next one that still is must be the next in the status.
    const bool queued = still.size() < status.queue.size() && status.queue[still.size()].who == waiting.who;
    if (queued) still.push_back(waiting);
    if (outcomes > 1) return fmt::format("{} had {} outcomes", waiting.who.node, outcomes);
    if (queued && outcomes > 0) return fmt::format("{} had an outcome and still waits", waiting.who.node);
    if (queued && waiting.ticket < granted_ticket_[lane])
      return fmt::format("{} was overtaken", waiting.who.node);
    if (queued) continue;
    for (const auto& [id, poll] : polls_)
      if (poll.lane == lane && poll.who == waiting.who) return fmt::format("poll {} was never woken", id);
  }
  if (!std::ranges::equal(still, status.queue, {}, &Waiting::who, &PlainQueued::who))
    return "the queue changed its order";
  queues_[lane] = still;
  outcomes_.erase(lane);
  granted_ticket_.erase(lane);
  return "";
}

// A lost wake-up: nothing stands in the way of a waiter, and it waits.
std::string Invariants::nobody_could_go(const std::string& resource) const {
  for (const auto& [lane, queue] : queues_) {
    if (lane.resource != resource || queue.empty()) continue;
    const Waiting& front = queue.front();
    bool blocked = false;
    for (const auto& [other, held] : holds_)
      blocked |=
          other.resource == resource && conflicts(other.operation, held.scope, lane.operation, front.scope);
    for (const auto& [other, older] : queues_)
      for (const Waiting& one : older)
        blocked |= other.resource == resource && one.ticket < front.ticket &&
                   conflicts(other.operation, one.scope, lane.operation, front.scope);
    if (!blocked) return fmt::format("{} waits for nothing", front.who.node);
  }
  return "";
}

}  // namespace turnstile::model
