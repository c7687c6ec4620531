#include "service/loaded_state.h"

#include <algorithm>

#include "base/check.h"

namespace turnstile {
namespace {

constexpr uint64_t kTidyAfter =
    20'000;  // records, or as many as there are resources: it looks at all of them

// Where the steps of a state that is only loaded would go: there are none.
class NoSink final : public CommitSink {
 public:
  uint64_t commit(Effects&) override {
    TS_CHECK(false, "what is only loaded takes no step");
    return 0;
  }
  uint64_t latest() const override { return 0; }
  bool wants_records() const override { return false; }
} no_sink;

}  // namespace

LoadedState::LoadedState(const EngineSettings& settings)
    : engine_(std::make_unique<Engine>(settings, no_sink, Token::none)) {}

void LoadedState::load(const Record& record) {
  ++untidy_;
  if (record.kind == RecordKind::event_mark)
    last_event_ = std::max(last_event_, record.number);
  else if (record.kind == RecordKind::life_mark)
    last_life_ = std::max(last_life_, record.number);
  else
    engine_->load(record);
}

void LoadedState::passed(Time latest) {
  if (untidy_ < std::max<uint64_t>(kTidyAfter, engine_->resource_count())) return;
  untidy_ = 0;
  engine_->tidy_loaded(latest);
}

}  // namespace turnstile
