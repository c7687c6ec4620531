// For how long a success counts, and what it leaves for those who skip (S37 to S40).
#include <algorithm>

#include "checks.h"

namespace turnstile::sim {

// How long a success counts that was answered.
Duration Checker::keep_of(const Call& done) const {
  return done.told_keep.value_or(what_.settings.retain_completed);
}

// Whether this success can be the one that a skip or a status tells of.
bool Checker::may_be_told(const Call& told, const Call& done) const {
  return is_success(done, told.type) && !done.already && done.node == told.completed_by &&
         done.result == told.told_result && done.invoked <= told.returned;
}

void Checker::results() {
  for (const auto& [resource, calls] : by_resource_)
    for (const Call* call : calls) {
      if (!was_answered(*call)) continue;
      const bool skips = call->kind == CallKind::lock && call->state == "skipped";
      if (skips && call->type == "once" && call->completed_by.empty())
        violation("a skip that does not tell who has done it: {}", show(*call));
      if (!call->completed_by.empty()) result_of(*call, calls);
      if (skips && call->type == "once") ran_out(*call, calls);
      if (call->kind == CallKind::unlock && call->told_keep &&
          (!call->keep || *call->told_keep > std::min(*call->keep, what_.settings.max_keep)))
        violation("a success that counts for longer than it may: {}", show(*call));
    }
}

// It is that of a success of the lane; and who comes after two of them is told the later one's.
void Checker::result_of(const Call& told, const Calls& calls) {
  bool known = false, fresh = false;
  for (const Call* done : calls) {
    if (!may_be_told(told, *done)) continue;
    known = true;
    const bool outdone = told.kind == CallKind::lock && std::ranges::any_of(calls, [&](const Call* other) {
                           return other != done && is_success(*other, told.type) && other->has_returned() &&
                                  !other->already && done->has_returned() &&
                                  other->invoked > done->returned && other->returned < first_ask(told);
                         });
    fresh = fresh || !outdone;
  }
  if (!known) violation("a result that nobody has left: {}", show(told));
  if (known && !fresh) violation("the result of an earlier success: {}", show(told));
}

// Who asks for the first time skips only by a success that still counts.
void Checker::ran_out(const Call& call, const Calls& calls) {
  if (what_.clock_back || first_ask(call) != call.invoked) return;
  for (const Call* done : calls) {
    if (!is_success(*done, "once") || done->already || done->invoked > call.returned) continue;
    if (!done->has_returned()) return;
    const bool forgotten = std::ranges::any_of(calls, [&](const Call* other) {
      return other->kind == CallKind::forget && other->type == "once" && other->invoked > done->returned &&
             was_answered(*other) && other->returned < call.invoked;
    });
    if (!forgotten && later(done->returned, keep_of(*done)) > call.invoked) return;
  }
  violation("skipped what does not count any more: {}", show(call));
}

// An event names its hold, so that it is known whose result it must carry.
void Checker::results_of_events() {
  std::map<uint64_t, const Call*> done;  // by token
  for (const Call& call : what_.history.calls)
    if (call.kind == CallKind::unlock && call.success && call.has_returned() && call.done && !call.already &&
        call.token != 0)
      done[call.token] = &call;
  for (const SeenStream& stream : what_.history.streams)
    for (const SeenEvent& event : stream.events) {
      if (event.kind != "completed") continue;
      const auto found = done.find(event.token);
      if (found != done.end() && found->second->result != event.result)
        violation("an event with the result '{}' of {}", event.result, show(*found->second));
    }
}

}  // namespace turnstile::sim
