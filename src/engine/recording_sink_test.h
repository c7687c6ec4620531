// A commit sink that remembers everything, for the tests of the engine: records and events with texts of
// their own, because what the engine hands over is valid only during the call.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <vector>

#include "base/sync.h"
#include "engine/commit_sink.h"

namespace turnstile {

// Records and events whose texts live as long as the log does.
class OwnedLog {
 public:
  OwnedLog() = default;
  OwnedLog(OwnedLog&&) = default;  // a deque's strings stay where they are
  OwnedLog& operator=(OwnedLog&&) = default;

  void add(Record record) {
    record.lane = keep(record.lane);
    record.who = keep(record.who);
    record.text = keep(record.text);
    record.error = keep(record.error);
    record.result = keep(record.result);
    records.push_back(record);
  }
  void add(Event event) {
    event.lane = keep(event.lane);
    event.who = keep(event.who);
    event.error = keep(event.error);
    event.reason = keep(event.reason);
    event.result = keep(event.result);
    events.push_back(event);
  }

  std::vector<Record> records;
  std::vector<Event> events;

 private:
  std::string_view keep(std::string_view text) { return texts_.emplace_back(text); }
  LaneName keep(const LaneName& lane) {
    return {OperationName(keep(lane.operation.text)), ResourceId(keep(lane.resource.text))};
  }
  Requester keep(const Requester& who) {
    return {NodeId(keep(who.node.text)), RequestId(keep(who.request.text))};
  }

  std::deque<std::string> texts_;
};

inline std::string name_of(EventKind kind) {
  constexpr const char* kNames[] = {"granted", "completed", "failed", "expired",
                                    "broken",  "cancelled", "refused"};
  return kNames[size_t(kind)];
}

inline std::string name_of(const Requester& who) {
  std::string name(who.node.text);
  if (!who.request.empty()) name.append("/").append(who.request.text);
  return name;
}

// "failed pull n1: boom", for one line in a test. The texts of a refusal are for people and left out.
inline std::string text_of(const Event& event) {
  std::string text =
      name_of(event.kind) + " " + std::string(event.lane.operation.text) + " " + name_of(event.who);
  if (!event.error.empty() && event.kind != EventKind::refused) text.append(": ").append(event.error);
  return text;
}

// Every field of a record, so that two states can be compared by their facts.
inline std::string text_of(const Record& r) {
  return fmt::format(
      "kind={} flags={} attempt={} {:?}/{:?} {:?}/{:?} number={} since={} until={} lease={} {}/{} {:?} {:?} "
      "{:?}",
      int(r.kind), r.flags, r.attempt, r.lane.operation.text, r.lane.resource.text, r.who.node.text,
      r.who.request.text, r.number, r.since.time_since_epoch().count(), r.until.time_since_epoch().count(),
      r.lease.count(), r.progress.done, r.progress.total, r.text, r.error, r.result);
}

// Threads: commit() may be called by any; `log` is only to be read when no thread calls the engine any more.
class RecordingSink : public CommitSink {
 public:
  uint64_t commit(Effects& effects) override {
    const Locked lock(mutex_);
    for (const Record& record : effects.records) log.add(record);
    for (const Event& event : effects.events) log.add(event);
    return ++commits_;
  }
  uint64_t latest() const override {
    const Locked lock(mutex_);
    return commits_;
  }
  bool wants_records() const override { return wants; }

  OwnedLog log;
  bool wants = true;

 private:
  mutable Mutex mutex_;
  uint64_t commits_ TS_GUARDED_BY(mutex_) = 0;
};

}  // namespace turnstile
