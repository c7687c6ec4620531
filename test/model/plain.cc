// Comparing and printing the plain forms. Printing leaves out what is empty, so that a trace stays readable.
#include "plain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace turnstile::model {
namespace {

constexpr const char* kStates[] = {"acquired", "queued", "skipped", "refused", "failed", "cancelled"};
constexpr const char* kLaneStates[] = {"idle", "held", "waiting", "completed"};
constexpr const char* kRefusals[] = {"none",
                                     "busy",
                                     "referenced",
                                     "failed",
                                     "queue_full",
                                     "not_held",
                                     "not_holder",
                                     "stale_token",
                                     "references_off",
                                     "too_many_operations",
                                     "too_many_resources",
                                     "too_many_references",
                                     "too_many_waiters"};
constexpr const char* kEvents[] = {"granted", "completed", "failed", "expired",
                                   "broken",  "cancelled", "refused"};

// "name=value " for what is not empty or zero.
void field(std::string& out, const char* name, const std::string& value) {
  if (!value.empty()) fmt::format_to(std::back_inserter(out), " {}={}", name, value);
}
void field(std::string& out, const char* name, uint64_t value) {
  if (value != 0) fmt::format_to(std::back_inserter(out), " {}={}", name, value);
}
void field(std::string& out, const char* name, const std::vector<std::string>& value) {
  if (!value.empty()) fmt::format_to(std::back_inserter(out), " {}={}", name, fmt::join(value, ","));
}
void field(std::string& out, const char* name, Refusal value) {
  if (value != Refusal::none)
    fmt::format_to(std::back_inserter(out), " {}={}", name, kRefusals[size_t(value)]);
}
void field(std::string& out, const PlainDone& done) {
  field(out, "done_by", done.node);
  field(out, "ago", uint64_t(done.ago.count()));
  field(out, "result", done.result);
}
int64_t us(Time time) { return time.time_since_epoch().count(); }
std::string show(const Who& who) { return who.request.empty() ? who.node : who.node + "#" + who.request; }

std::vector<PlainWake> sorted(std::vector<PlainWake> wakes) {
  std::ranges::sort(wakes, {}, &PlainWake::poll);
  return wakes;
}

}  // namespace

bool agrees(const PlainLock& model, const PlainLock& engine) {
  const bool holder_agrees =
      model.holders.empty()
          ? engine.holders.empty()
          : engine.holders.size() == 1 && std::ranges::count(model.holders, engine.holders[0]) == 1;
  return holder_agrees && model.state == engine.state && model.refusal == engine.refusal &&
         model.token == engine.token && model.attempt == engine.attempt &&
         model.previous_error == engine.previous_error && model.position == engine.position &&
         model.error == engine.error && model.references == engine.references &&
         model.bonded == engine.bonded && model.done == engine.done;
}

bool agrees(const std::optional<PlainLock>& model, const std::optional<PlainLock>& engine) {
  return model.has_value() == engine.has_value() && (!model || agrees(*model, *engine));
}

bool agrees(const PlainStatus& model, const PlainStatus& engine) {
  if (model.error != kAnySentence) return model == engine;
  PlainStatus said = model;
  said.error = engine.error;
  return !engine.error.empty() && said == engine;
}

bool agrees(const PlainEvent& model, const PlainEvent& engine) {
  if (model.error != kAnySentence) return model == engine;
  PlainEvent said = model;
  said.error = engine.error;
  said.reason = engine.reason;
  return !engine.error.empty() && said == engine;
}

bool agrees(const std::vector<PlainEvent>& model, const std::vector<PlainEvent>& engine) {
  return std::ranges::equal(model, engine,
                            [](const PlainEvent& a, const PlainEvent& b) { return agrees(a, b); });
}

bool agrees(const Step& model, const Step& engine) {
  if (!agrees(model.events, engine.events) || model.wakes.size() != engine.wakes.size()) return false;
  if (model.wakes.empty()) return true;
  return std::ranges::equal(
      sorted(model.wakes), sorted(engine.wakes),
      [](const PlainWake& a, const PlainWake& b) { return a.poll == b.poll && agrees(a.answer, b.answer); });
}

std::string show(bool value) { return value ? "true" : "false"; }

std::string show(const std::optional<PlainLock>& answer) { return answer ? show(*answer) : "nothing"; }

std::string show(const PlainHolder& holder) {
  std::string out = fmt::format("{{{} {} token={} since={}", holder.operation, show(holder.who), holder.token,
                                us(holder.since));
  field(out, "lease", uint64_t(holder.lease.count()));
  if (holder.progress) out += fmt::format(" progress={}/{}", holder.progress->done, holder.progress->total);
  field(out, "info", holder.info);
  return out + "}";
}

std::string show(const PlainLock& answer) {
  std::string out = kStates[size_t(answer.state)];
  field(out, "refusal", answer.refusal);
  field(out, "token", answer.token);
  field(out, "attempt", answer.attempt);
  field(out, "previous_error", answer.previous_error);
  field(out, "position", answer.position);
  for (const PlainHolder& holder : answer.holders) out += " holder=" + show(holder);
  field(out, "error", answer.error);
  field(out, "references", answer.references);
  if (answer.bonded) out += " bonded";
  field(out, answer.done);
  return out;
}

std::string show(const PlainUnlock& answer) {
  std::string out = answer.refusal == Refusal::none ? "released" : "refused";
  field(out, "refusal", answer.refusal);
  if (answer.already) out += " already";
  field(out, "next", answer.next);
  if (answer.keep) out += fmt::format(" keep={}", answer.keep->count());
  field(out, "waiters", answer.waiters);
  return out;
}

std::string show(const PlainRenew& answer) {
  std::string out = answer.refusal == Refusal::none ? "renewed" : "refused";
  field(out, "refusal", answer.refusal);
  field(out, "lease", uint64_t(answer.lease.count()));
  return out;
}

std::string show(const PlainBreak& answer) {
  std::string out = answer.refusal == Refusal::none ? "broken" : "refused";
  field(out, "refusal", answer.refusal);
  field(out, "node", answer.node);
  return out;
}

std::string show(const PlainReferences& answer) {
  std::string out = fmt::format("references count={}", answer.count);
  field(out, "refusal", answer.refusal);
  if (answer.changed) out += " changed";
  field(out, "nodes", answer.nodes);
  return out;
}

std::string show(const PlainStatus& answer) {
  std::string out =
      fmt::format("{}:{} {}", answer.lane.operation, answer.lane.resource, kLaneStates[size_t(answer.state)]);
  if (answer.holder) out += " holder=" + show(*answer.holder);
  for (const PlainQueued& queued : answer.queue) {
    out += fmt::format(" queue[{}]={{{} since={}", queued.position, show(queued.who), us(queued.since));
    field(out, "info", queued.info);
    out += "}";
  }
  field(out, "queue_length", answer.queue_length);
  if (const auto& kept = answer.completion) {
    out += fmt::format(" completion={{{} success={} permanent={} at={}", kept->node, kept->success,
                       kept->permanent, us(kept->at));
    field(out, "error", kept->error);
    field(out, "result", kept->result);
    out += "}";
  }
  field(out, "references", answer.references);
  field(out, "waiters", answer.waiters);
  if (answer.acquired) out += " acquired";
  field(out, "token", answer.token);
  field(out, "attempt", answer.attempt);
  field(out, "position", answer.position);
  if (answer.completed) out += answer.success ? " completed success" : " completed failure";
  field(out, "error", answer.error);
  field(out, answer.done);
  return out;
}

std::string show(const PlainEvent& event) {
  std::string out = fmt::format("{} {}:{} {} at={}", kEvents[size_t(event.kind)], event.lane.operation,
                                event.lane.resource, show(event.who), us(event.at));
  field(out, "token", event.token);
  field(out, "attempt", event.attempt);
  if (event.permanent) out += " permanent";
  field(out, "error", event.error);
  field(out, "reason", event.reason);
  field(out, "result", event.result);
  return out;
}

std::string show(const PlainWake& wake) { return fmt::format("poll {}: {}", wake.poll, show(wake.answer)); }

std::string show(const Step& step) {
  std::string out = show(step.events);
  for (const PlainWake& wake : sorted(step.wakes)) out += "    wake " + show(wake) + "\n";
  return out;
}

std::string show(const std::vector<PlainEvent>& events) {
  std::string out;
  for (const PlainEvent& event : events) out += "    event " + show(event) + "\n";
  return out;
}

std::string show(const std::vector<PlainStatus>& list) {
  std::string out;
  for (const PlainStatus& status : list) out += "    " + show(status) + "\n";
  return out;
}

}  // namespace turnstile::model
