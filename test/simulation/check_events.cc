// Events: behind their answers (S30), and without a gap (S28).
#include <algorithm>

#include "checks.h"

namespace turnstile::sim {

// S30. Of several answers that tell of one step the first counts: one of them was caused by it.
void Checker::answers_before_events() {
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
        violation("an event overtook its answer (S30): {} {} token {}, before {}", event.kind, event.resource,
                  event.token, show(*answer->second));
    }
}

// Whether another request of this requester was, or may have been, queued before.
bool Checker::has_waited(const Call& call) const {
  return std::ranges::any_of(calls_of(call.resource), [&](const Call* other) {
    return other != &call && other->kind == CallKind::lock && other->lane() == call.lane() &&
           other->who() == call.who() && other->invoked <= call.returned &&
           (!other->has_returned() || other->state == "queued");
  });
}

// Told because of the subscription, not because it happened then.
bool Checker::is_state(const SeenStream& stream, const SeenEvent& event) {
  const bool reset = !stream.events.empty() && stream.events.front().reset;
  return event.id == 0 || (event.stamp == stream.first_stamp && (stream.after == 0 || reset));
}

// S28: ids grow, an id means one event, and what others saw in between was not left out.
void Checker::streams() {
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

void Checker::owed(const SeenStream& stream, const std::map<uint64_t, const SeenEvent*>& all, uint64_t after,
                   uint64_t before) {
  for (auto event = all.upper_bound(after); event != all.end() && event->first < before; ++event) {
    const SeenEvent& seen = *event->second;
    if (!stream.resource.empty() && (stream.resource != seen.resource || stream.type != seen.type)) continue;
    violation("an event was left out: {} {} {} id {} between {} and {} (stream opened at {})", seen.kind,
              seen.type, seen.resource, seen.id, after, before, at(stream.opened));
    return;
  }
}

}  // namespace turnstile::sim
