// The model's bonds, deadlines, restart and views: sections 3 (S16) and 6 of semantics.md.
#include <algorithm>

#include "model.h"

namespace turnstile::model {

// S27: how it ended (the lane's completion, else how the named requester's wait did) and a grant that nobody
// has claimed are told first. Naming the holder of that grant claims it.
std::vector<PlainEvent> Model::subscribe(const SubscribeCommand& command, Time now) {
  Place at = place(command.lane);
  const Who who = who_of(command.who);
  std::vector<PlainEvent> told;
  const auto ended = at.lane.ended.find(who);
  if (const auto& kept = at.lane.completion; kept && kept->until > now) {
    const auto& [node, success, permanent, error, when, result] = kept->what;
    told.push_back({success ? EventKind::completed : EventKind::failed,
                    at.name,
                    {node, ""},
                    when,
                    kept->token,
                    kept->attempt,
                    permanent,
                    error,
                    "",
                    result});
  } else if (ended != at.lane.ended.end() && ended->second.until > now) {
    const auto& [how, error, until, token, attempt, done] = ended->second;
    const EventKind kinds[] = {EventKind::completed, EventKind::refused, EventKind::failed};
    told.push_back({kinds[size_t(how)], at.name, who, now, token, attempt, how == Ending::failed,
                    how == Ending::refused ? kAnySentence : error, "", done ? done->result : ""});
  }
  if (const auto& hold = at.lane.hold; hold && hold->unclaimed)
    told.push_back(
        {EventKind::granted, at.name, hold->who, hold->since, hold->token, hold->attempt, false, "", ""});

  if (who.node.empty() || command.bond == BondId::none) return told;
  at.lane.bonds.insert({who, uint64_t(command.bond), false});
  if (at.lane.hold && at.lane.hold->who == who) claim(at, now);
  if (Waiter* waiter = find_waiter(at.lane, who)) {
    waiter->heard = now;
    waiter->grace_until = kNever;
  }
  watch_bonds(at.lane, now);
  return told;
}

// S21: the last bond of a waiter breaks, and its grace runs; a hold's is seen by watch_bonds.
void Model::close_bond(const LaneName& lane, const Requester& requester, BondId id, Time now) {
  Place at = place(lane);
  const Who who = who_of(requester);
  const auto closed = std::erase_if(
      at.lane.bonds, [&](const Bond& bond) { return bond.who == who && bond.id == uint64_t(id); });
  if (closed == 0) return;
  watch_bonds(at.lane, now);
  Waiter* waiter = find_waiter(at.lane, who);
  if (waiter) waiter->heard = now;  // S35: it was there until now
  if (waiter && waiter->polls.empty() && !has_any_bond(at.lane, who))
    waiter->grace_until = now + settings_.bond_grace;
}

bool Model::has_bond(const LaneName& lane, const Requester& requester, BondId id) const {
  const auto resource = resources_.find(std::string(lane.resource.text));
  if (resource == resources_.end()) return false;
  const auto found = resource->second.lanes.find(std::string(lane.operation.text));
  if (found == resource->second.lanes.end()) return false;
  return std::ranges::any_of(found->second.bonds, [&](const Bond& bond) {
    return bond.who == who_of(requester) && bond.id == uint64_t(id);
  });
}

void Model::break_poll(const LaneName& lane, const Requester& who, PollId poll, Time now) {
  Place at = place(lane);
  Waiter* waiter = find_waiter(at.lane, who_of(who));
  // S36: its grant was on the way when it broke.
  if (!waiter && at.lane.hold && at.lane.hold->who == who_of(who))
    return undelivered(lane, who, Token(at.lane.hold->token), now);
  if (!waiter || waiter->polls.erase(uint64_t(poll)) == 0) return;
  waiter->heard = now;
  if (waiter->polls.empty() && !has_any_bond(at.lane, waiter->who))
    waiter->grace_until = now + settings_.bond_grace;
}

// S24: an orderly end. The waiter keeps its place, as one without a bond unless it has another.
std::optional<PlainLock> Model::end_poll(const LaneName& lane, const Requester& who, PollId poll, Time now) {
  Place at = place(lane);
  Waiter* waiter = find_waiter(at.lane, who_of(who));
  if (!waiter || waiter->polls.erase(uint64_t(poll)) == 0) return std::nullopt;
  waiter->heard = now;
  return queued(at, *waiter);
}

// S36.
void Model::undelivered(const LaneName& lane, const Requester& who, Token token, Time now) {
  Place at = place(lane);
  if (!at.lane.hold || at.lane.hold->token != uint64_t(token) || at.lane.hold->who != who_of(who)) return;
  Hold& hold = *at.lane.hold;
  if (hold.by_polls == 0 || --hold.by_polls > 0) return;
  hold.unclaimed = true;
  hold.claim_until = now + settings_.claim_timeout;
  hold.lease_until = hold.max_until = kNever;
}

Time Model::due(const Hold& hold) {
  return std::min({hold.claim_until, hold.lease_until, hold.max_until, hold.bond_until, hold.stall_until});
}

std::string Model::due_reason(const Hold& hold) {
  const Time first = due(hold);
  if (hold.claim_until == first) return "unclaimed";
  if (hold.lease_until == first) return "lease";
  if (hold.max_until == first) return "max_hold";
  if (hold.bond_until == first) return "bond";
  return "stall";
}

Time Model::due(const ResourceModel& resource, Time forgotten) {
  Time first = kNever;
  const auto remembered = [&](Time until) {
    if (until > forgotten) first = std::min(first, until);
  };
  for (const auto& [operation, lane] : resource.lanes) {
    if (lane.hold) first = std::min(first, due(*lane.hold));
    for (const Waiter& waiter : lane.waiters) first = std::min(first, waiter.grace_until);
    if (lane.completion) remembered(lane.completion->until);
    if (lane.released) remembered(lane.released->until);
    for (const auto& [who, ended] : lane.ended) remembered(ended.until);
  }
  return first;
}

Time Model::next_deadline(Time forgotten) const {
  Time first = kNever;
  for (const auto& [name, resource] : resources_) first = std::min(first, due(resource, forgotten));
  return first;
}

std::map<std::string, Step> Model::expire(Time now) {
  std::map<std::string, Step> steps;
  for (auto& [name, resource] : resources_)
    while (due(resource) <= now) expire_resource(name, resource, now, steps[name]);
  return steps;
}

// Waiters whose grace is over have gone, by ticket, whether or not anybody has looked (S21).
void Model::leave_overdue(const std::string& name, Time now, Step& out) {
  std::map<uint64_t, std::pair<std::string, Who>> leaving;
  for (const auto& [operation, lane] : resources_[name].lanes)
    for (const Waiter& waiter : lane.waiters)
      if (waiter.grace_until <= now) leaving.insert({waiter.ticket, {operation, waiter.who}});
  for (const auto& [ticket, entry] : leaving) {
    Place at = place(entry.first, name);
    leave(at, entry.second, "bond", now, out);
  }
}

// Waiters that have gone, then holds by the name of their operation, then what is only remembered.
void Model::expire_resource(const std::string& name, ResourceModel& resource, Time now, Step& out) {
  leave_overdue(name, now, out);
  for (auto& [operation, lane] : resource.lanes) {
    if (!lane.hold || due(*lane.hold) > now) continue;
    Place at = place(operation, name);
    end_by_failure(at, EventKind::expired, due_reason(*lane.hold), now, out);
  }
  advance(name, now, out);

  for (auto& [operation, lane] : resource.lanes) {
    if (lane.completion && lane.completion->until <= now) lane.completion.reset();
    if (lane.released && lane.released->until <= now) lane.released.reset();
    std::erase_if(lane.ended, [&](const auto& ended) { return ended.second.until <= now; });
  }
}

// S31: nothing acknowledged is lost; every connection is, and leases and bonds get their full time again.
std::map<std::string, Step> Model::restart(Time now) {
  const Time bonds_until = now + std::max(settings_.bond_grace, settings_.restored_bond_grace);
  for (auto& [name, resource] : resources_)
    for (auto& [operation, lane] : resource.lanes) {
      for (Waiter& waiter : lane.waiters) {
        const bool lived_by_a_bond =
            !waiter.polls.empty() || has_any_bond(lane, waiter.who) || waiter.grace_until != kNever;
        waiter.grace_until = lived_by_a_bond ? bonds_until : kNever;
        waiter.polls.clear();
        waiter.heard = now;
      }
      lane.bonds.clear();
      if (!lane.hold) continue;
      Hold& hold = *lane.hold;
      hold.by_polls = 0;
      if (hold.unclaimed) hold.claim_until = now + settings_.claim_timeout;
      if (hold.lease_until != kNever) hold.lease_until = now + hold.lease;
      if (hold.monitor) hold.bond_until = bonds_until;
      if (hold.stall_until != kNever) hold.stall_until = now + settings_.stall_timeout;
    }
  std::map<std::string, Step> steps;
  for (auto& [name, resource] : resources_) advance(name, now, steps[name]);
  return steps;
}

PlainStatus Model::status(const StatusCommand& command, Time now) {
  Place at = place(command.lane);
  const Who who = who_of(command.who);
  PlainStatus answer{.lane = at.name};
  const auto& kept = at.lane.completion;
  const bool is_kept = kept && kept->until > now;
  const auto ended = at.lane.ended.find(who);
  if (who.node.empty()) {
    answer.completed = is_kept;
    answer.success = is_kept && kept->what.success;
    if (is_kept) answer.error = kept->what.error;
  } else if (at.lane.hold && at.lane.hold->who == who) {
    claim(at, now);
    answer.acquired = true;
    answer.token = at.lane.hold->token;
    answer.attempt = at.lane.hold->attempt;
  } else if (Waiter* waiter = find_waiter(at.lane, who)) {
    waiter->heard = now;
    answer.position = queued(at, *waiter).position;
  } else if (ended != at.lane.ended.end() && ended->second.until > now) {
    answer.completed = true;
    answer.success = ended->second.how == Ending::skipped;
    if (answer.success) use(at, who.node);
    if (answer.success) answer.done = view(ended->second.done, now);
    answer.error = ended->second.how == Ending::refused ? kAnySentence : ended->second.error;
  }

  if (at.lane.hold) answer.holder = view(at.name.operation, *at.lane.hold);
  for (const Waiter& waiter : at.lane.waiters)
    answer.queue.push_back({waiter.who, uint32_t(answer.queue.size() + 1), waiter.since, waiter.info});
  answer.queue_length = uint32_t(answer.queue.size());
  if (is_kept) answer.completion = kept->what;
  answer.references = names(at.resource.references);
  answer.waiters = nodes_waiting(at.resource);
  answer.state = answer.holder           ? LaneState::held
                 : !answer.queue.empty() ? LaneState::waiting
                 : is_kept               ? LaneState::completed
                                         : LaneState::idle;
  return answer;
}

std::vector<PlainStatus> Model::list(Time now) {
  std::vector<PlainStatus> lanes;
  for (auto& [name, resource] : resources_)
    for (auto& [operation, lane] : resource.lanes) {
      PlainStatus one = status({{OperationName(operation), ResourceId(name)}, {}}, now);
      if (one.state != LaneState::idle) lanes.push_back(one);
    }
  return lanes;
}

const Hold* Model::hold(const Lane& name) const {
  const auto resource = resources_.find(name.resource);
  if (resource == resources_.end()) return nullptr;
  const auto lane = resource->second.lanes.find(name.operation);
  return lane == resource->second.lanes.end() || !lane->second.hold ? nullptr : &*lane->second.hold;
}

const Waiter* Model::front(const Lane& name) const {
  const auto resource = resources_.find(name.resource);
  if (resource == resources_.end()) return nullptr;
  const auto lane = resource->second.lanes.find(name.operation);
  return lane == resource->second.lanes.end() || lane->second.waiters.empty() ? nullptr
                                                                              : &lane->second.waiters[0];
}

const Released* Model::released(const Lane& name) const {
  const auto resource = resources_.find(name.resource);
  if (resource == resources_.end()) return nullptr;
  const auto lane = resource->second.lanes.find(name.operation);
  return lane == resource->second.lanes.end() || !lane->second.released ? nullptr : &*lane->second.released;
}

size_t Model::waiter_count() const {
  size_t count = 0;
  for (const auto& [name, resource] : resources_)
    for (const auto& [operation, lane] : resource.lanes) count += lane.waiters.size();
  return count;
}

size_t Model::resource_count(Time now) const {
  size_t count = 0;
  for (const auto& [name, resource] : resources_) {
    bool needed = !resource.references.empty();
    for (const auto& [operation, lane] : resource.lanes) {
      needed = needed || lane.hold || !lane.waiters.empty() ||
               (lane.completion && lane.completion->until > now) ||
               (lane.released && lane.released->until > now);
      for (const auto& [who, ended] : lane.ended) needed = needed || ended.until > now;
    }
    if (needed) ++count;
  }
  return count;
}

size_t Model::resources_with_bonds() const {
  return size_t(std::ranges::count_if(resources_, [](const auto& resource) {
    return std::ranges::any_of(resource.second.lanes,
                               [](const auto& lane) { return !lane.second.bonds.empty(); });
  }));
}

PlainDone Model::view(const std::optional<Done>& done, Time now) {
  if (!done) return {};
  return {done->node, now - done->at, done->result};
}

PlainHolder Model::view(const std::string& operation, const Hold& hold) {
  return {operation, hold.who, hold.token, hold.since, hold.lease, hold.progress, hold.info};
}

// S16: in the order in which they queued.
std::vector<std::string> Model::nodes_waiting(const ResourceModel& resource) {
  std::map<uint64_t, std::string> by_ticket;
  for (const auto& [operation, lane] : resource.lanes)
    for (const Waiter& waiter : lane.waiters) by_ticket[waiter.ticket] = waiter.who.node;
  std::vector<std::string> nodes;
  for (const auto& [ticket, node] : by_ticket) nodes.push_back(node);
  return nodes;
}

std::vector<std::string> Model::names(const std::set<std::string>& nodes) {
  return {nodes.begin(), nodes.end()};
}

}  // namespace turnstile::model
