// The engine's answers in their plain form, and the engine with everything a test needs around it: a commit
// sink that remembers, effects, and reloading from what was remembered.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "engine/engine.h"
#include "plain.h"
#include "random_commands.h"

namespace turnstile::model {

PlainLock plain(const LockAnswer& answer);
PlainUnlock plain(const UnlockAnswer& answer);
PlainRenew plain(const RenewAnswer& answer);
PlainBreak plain(const BreakAnswer& answer);
PlainReferences plain(const ReferencesAnswer& answer);
PlainStatus plain(const StatusAnswer& answer);
PlainEvent plain(const Event& event);
Step plain(const Effects& effects);

// A record that owns its texts.
struct StoredRecord {
  explicit StoredRecord(const Record& from);
  Record view() const;

  Record record;
  std::string operation, resource, node, request, text, error, result;
};

// The journal of the tests: a list in memory, always durable.
class RecordingSink final : public CommitSink {
 public:
  uint64_t commit(Effects& effects) override;
  uint64_t latest() const override { return sequence_; }
  bool wants_records() const override { return true; }

  std::deque<StoredRecord> records;
  size_t events = 0;  // how many were committed so far

 private:
  uint64_t sequence_ = 0;
};

// What the measures add up to: the gauges that the server makes of them.
struct Gauges {
  int64_t held = 0;
  int64_t waiting = 0;
  friend bool operator==(const Gauges&, const Gauges&) = default;
};

// Not its job: comparing. Tokens are the engine's own.
class Subject {
 public:
  Subject(const EngineSettings& settings, uint64_t first_token);

  Engine& engine() { return *engine_; }
  // Cleared for the next call.
  Effects& effects();
  const RecordingSink& sink() const { return sink_; }

  // After a call: its step, whose measures are counted.
  Step take_step();
  const Gauges& gauges() const { return gauges_; }

  // In the order in which they happened. `limit` is passed on, to see that the rest is not forgotten.
  std::vector<Step> expire(Time now, size_t limit);
  // Crash, and come back from what is chosen, or from the first `durable` records. What the engine says
  // meanwhile is returned.
  std::vector<Step> reload(ReloadChoice choice, size_t late, size_t durable, Time now);

 private:
  EngineSettings settings_;
  Token first_token_;
  RecordingSink sink_;
  std::unique_ptr<Engine> engine_;
  Effects effects_;
  Gauges gauges_;
};

}  // namespace turnstile::model
