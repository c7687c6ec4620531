// Turning views into strings, field by field; and crash and reload.
#include "engine_plain.h"

#include <algorithm>

namespace turnstile::model {
namespace {

Who plain(const Requester& who) { return {std::string(who.node.text), std::string(who.request.text)}; }
Lane plain(const LaneName& lane) {
  return {std::string(lane.operation.text), std::string(lane.resource.text)};
}
std::vector<std::string> plain(std::span<const std::string_view> texts) {
  return {texts.begin(), texts.end()};
}
std::vector<std::string> plain(const NodesView& nodes) { return plain(nodes.nodes); }

PlainHolder plain(const HolderView& holder) {
  return {std::string(holder.operation.text),
          plain(holder.who),
          uint64_t(holder.token),
          holder.since,
          holder.lease,
          holder.progress,
          std::string(holder.info)};
}

PlainDone plain(const std::optional<DoneView>& done) {
  if (!done) return {};
  return {std::string(done->node.text), done->ago, std::string(done->result)};
}

}  // namespace

PlainLock plain(const LockAnswer& answer) {
  PlainLock out{answer.state,
                answer.refusal,
                uint64_t(answer.token),
                answer.attempt,
                std::string(answer.previous_error),
                answer.position,
                {},
                "",
                plain(answer.references),
                answer.bonded,
                plain(answer.done)};
  if (answer.holder) out.holders.push_back(plain(*answer.holder));
  if (answer.state == LockState::failed) out.error = answer.error;
  return out;
}

PlainUnlock plain(const UnlockAnswer& answer) {
  return {answer.refusal, answer.already, std::string(answer.next.text), plain(answer.waiters), answer.keep};
}

PlainRenew plain(const RenewAnswer& answer) { return {answer.refusal, answer.lease}; }

PlainBreak plain(const BreakAnswer& answer) { return {answer.refusal, std::string(answer.node.text)}; }

PlainReferences plain(const ReferencesAnswer& answer) {
  return {answer.refusal, answer.changed, answer.count, plain(answer.nodes)};
}

PlainStatus plain(const StatusAnswer& answer) {
  PlainStatus out{.lane = plain(answer.lane), .state = answer.state};
  if (answer.holder) out.holder = plain(*answer.holder);
  for (const QueueView& one : answer.queue)
    out.queue.push_back({plain(one.who), one.position, one.since, std::string(one.info)});
  out.queue_length = answer.queue_length;
  if (const auto& kept = answer.completion)
    out.completion = {std::string(kept->node.text), kept->success, kept->permanent,
                      std::string(kept->error),     kept->at,      std::string(kept->result)};
  out.references = plain(answer.references);
  out.waiters = plain(answer.waiters);
  out.acquired = answer.acquired;
  out.token = uint64_t(answer.token);
  out.attempt = answer.attempt;
  out.position = answer.position;
  out.completed = answer.completed;
  out.success = answer.success;
  out.error = answer.error;
  out.done = plain(answer.done);
  return out;
}

PlainEvent plain(const Event& event) {
  return {event.kind,
          plain(event.lane),
          plain(event.who),
          event.at,
          uint64_t(event.token),
          event.attempt,
          event.permanent,
          std::string(event.error),
          std::string(event.reason),
          std::string(event.result)};
}

Step plain(const Effects& effects) {
  Step step;
  for (const Event& event : effects.events) step.events.push_back(plain(event));
  for (const Wake& wake : effects.wakes) {
    step.wakes.push_back({uint64_t(wake.poll), plain(wake.answer)});
    step.wakes.back().answer.done.ago = {};  // it may be told later than it was decided (S34)
  }
  return step;
}

StoredRecord::StoredRecord(const Record& from)
    : record(from),
      operation(from.lane.operation.text),
      resource(from.lane.resource.text),
      node(from.who.node.text),
      request(from.who.request.text),
      text(from.text),
      error(from.error),
      result(from.result) {}

Record StoredRecord::view() const {
  Record out = record;
  out.lane = {OperationName(operation), ResourceId(resource)};
  out.who = {NodeId(node), RequestId(request)};
  out.text = text;
  out.error = error;
  out.result = result;
  return out;
}

uint64_t RecordingSink::commit(Effects& effects) {
  for (const Record& record : effects.records) records.emplace_back(record);
  events += effects.events.size();
  return ++sequence_;
}

Subject::Subject(const EngineSettings& settings, uint64_t first_token)
    : settings_(settings),
      first_token_(Token(first_token)),
      engine_(std::make_unique<Engine>(settings, sink_, first_token_)) {}

Effects& Subject::effects() {
  effects_.clear();
  return effects_;
}

Step Subject::take_step() {
  for (const Measure& measure : effects_.measures) {
    const auto count = int64_t(measure.count);
    gauges_.held += measure.kind == MeasureKind::granted ? count
                    : measure.kind == MeasureKind::ended ? -count
                                                         : 0;
    gauges_.waiting += measure.kind == MeasureKind::queued       ? count
                       : measure.kind == MeasureKind::left_queue ? -count
                                                                 : 0;
  }
  return plain(effects_);
}

std::vector<Step> Subject::expire(Time now, size_t limit) {
  std::vector<Step> steps;
  const auto add_step = [&](Effects&) { steps.push_back(take_step()); };
  while (engine_->expire(now, effects(), limit, add_step) > 0) {
  }
  return steps;
}

std::vector<Step> Subject::reload(ReloadChoice choice, size_t late, size_t durable, Time now) {
  sink_.records.erase(sink_.records.begin() + ptrdiff_t(durable), sink_.records.end());
  if (choice != ReloadChoice::history) {
    std::deque<StoredRecord> snapshot;
    engine_->dump([&](const Record& record) { snapshot.emplace_back(record); });
    if (choice == ReloadChoice::snapshot_and_late_history) {
      const size_t from = sink_.records.size() - std::min(late, sink_.records.size());
      snapshot.insert(snapshot.end(), sink_.records.begin() + ptrdiff_t(from), sink_.records.end());
    }
    sink_.records = std::move(snapshot);
  }
  engine_ = std::make_unique<Engine>(settings_, sink_, first_token_);
  const std::deque<StoredRecord> records = sink_.records;
  for (const StoredRecord& record : records) engine_->load(record.view());
  std::vector<Step> steps;
  const auto add_step = [&](Effects&) { steps.push_back(take_step()); };
  const Engine::Loaded loaded = engine_->finish_load(now, effects(), add_step).value();
  gauges_ = {int64_t(loaded.holds), int64_t(loaded.waiters)};
  return steps;
}

}  // namespace turnstile::model
