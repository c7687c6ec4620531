#include "service/service.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "api/answer_writer.h"
#include "api/event_json.h"
#include "base/log.h"
#include "base/plant.h"
#include "service/housekeeper.h"

namespace turnstile {
namespace {

constexpr Duration kNoticeable = std::chrono::milliseconds(20);
constexpr size_t kMostExpired = 1000;                         // resources between two looks at the clock
constexpr uint64_t kLargestNumber = (uint64_t(1) << 53) - 1;  // that every JSON reader holds exactly

// Where tokens and event ids of this life begin: a clock that a restored backup cannot turn back (X8). One
// number for each microsecond is more than are ever used, and 2^53 of them last until the year 2305.
Result<uint64_t> first_number(Time now) {
  using namespace std::chrono;
  constexpr Time kBeginning = sys_days(year(2020) / 1 / 1);
  if (now > kBeginning && uint64_t((now - kBeginning).count()) < kLargestNumber)
    return uint64_t((now - kBeginning).count());
  return fail(fmt::format(
      "the clock of this machine says {:%Y-%m-%d}: tokens count microseconds since 2020, so it must be right "
      "before the server starts. Set the clock, then start again.",
      time_point_cast<seconds>(now)));
}

}  // namespace

Service::Service(std::unique_ptr<Journal> journal, unsigned loops, Metrics& metrics)
    : metrics_(metrics), journal_(std::move(journal)) {
  for (unsigned i = 0; i < loops; ++i) links_.push_back(std::make_shared<LoopLink>());
  gate_ =
      std::make_unique<Gate>(*journal_, links_, [this](double seconds) { metrics_.observe_commit(seconds); });
  housekeeper_ = std::make_unique<Housekeeper>(*this);
}

Service::~Service() { close(); }

void Service::close() {
  detach();
  housekeeper_->stop();
  journal_->stop();
}

Result<std::unique_ptr<Service>> Service::begin(const EngineSettings& settings,
                                                std::unique_ptr<Journal> journal, unsigned loops,
                                                Metrics& metrics, OnFailed on_failed, const TimeSource& time,
                                                std::unique_ptr<LoadedState> followed) {
  if (!followed) followed = std::make_unique<LoadedState>(settings);
  std::unique_ptr<Service> service(new Service(std::move(journal), loops, metrics));
  if (const Result<void> loaded = service->load(*followed, std::move(on_failed), time); !loaded)
    return std::unexpected(loaded.error());
  return service;
}

Result<void> Service::load(LoadedState& state, OnFailed on_failed, const TimeSource& time) {
  const auto start = std::chrono::steady_clock::now();
  const Result<Recovered> recovered = journal_->recover([&](const Record& record) { state.load(record); });
  if (!recovered) return std::unexpected(recovered.error());
  const uint64_t last_event = state.last_event(), last_first = state.last_life();  // of all lives before
  engine_ = state.take_engine();
  engine_->use(*gate_);
  clock_ = std::make_unique<Clock>(recovered->latest, time);
  began_ = now();
  const Result<uint64_t> first = first_number(began_);
  if (!first) return std::unexpected(first.error());
  if (!planted(Plant::token_reused_after_takeover)) engine_->raise_tokens(Token(*first));
  // Below the first event there are two ids for what is told to whoever comes back (EventLog).
  first_event_ = std::max({*first, last_event + 3, last_first + 2});
  make_events(first_event_, last_event, last_first > last_event ? last_first - 1 : 0);
  if (!planted(Plant::ids_used_again)) {
    Effects begun;
    begun.records.push_back(life_mark());
    begun.at = now();
    gate_->commit(begun);
    gate_->unanswered(begun);
  }

  journal_->start([this](uint64_t sequence) { gate_->durable(sequence); },
                  [this, on_failed = std::move(on_failed)](const Error& error) {
                    gate_->close();
                    on_failed(error);
                  });
  Effects effects;
  const Time finishing = now();
  loaded_.journal = *recovered;
  const Result<Engine::Loaded> finished = engine_->finish_load(finishing, effects, [this](Effects& step) {
    gate_->unanswered(step);  // what it grants is counted with all that is held, below
  });
  if (!finished) return std::unexpected(finished.error());
  loaded_.engine = *finished;
  metrics_.forget_lanes();
  engine_->for_each_lane([this](std::string_view operation, bool held, size_t waiters) {
    metrics_.add_loaded(operation, held, waiters);
  });
  if (now() - finishing > kNoticeable) engine_->restart_times(now());  // S31
  loaded_.took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  return {};
}

void Service::make_events(uint64_t first_id, uint64_t last_of_earlier_life,
                          uint64_t beginning_of_earlier_life) {
  EventLogSettings settings;
  settings.durable_store = journal_->keeps_records();
  settings.last_of_earlier_life = last_of_earlier_life;
  settings.beginning_of_earlier_life = beginning_of_earlier_life;
  event_log_ = std::make_unique<EventLog>(first_id, settings);
  router_ = std::make_unique<Router>(
      *event_log_,
      [](uint64_t id, const Event& event) {
        std::string text;
        append_sse_event(text, id, event);
        return text;
      },
      [this](unsigned loop, std::vector<Delivery>&& deliveries) {
        post(links_[loop], [shared = std::make_shared<std::vector<Delivery>>(std::move(deliveries))](
                               LoopPort& port) { port.send_events(*shared); });
      });
  gate_->attach(*event_log_, *router_, last_of_earlier_life);
}

Record Service::life_mark() const {
  Record mark;
  mark.kind = RecordKind::life_mark;
  mark.number = first_event_;
  return mark;
}

void Service::start() { housekeeper_->start(); }

void Service::detach() {
  for (const std::shared_ptr<LoopLink>& link : links_) link->ended.store(true, std::memory_order_release);
}

void Service::distribute(Effects& effects, LoopPort* from) {
  metrics_.observe(effects.measures);
  if (effects.unfinished) housekeeper_->hurry();
  if (effects.wakes.empty()) return;
  under_way_.fetch_add(int64_t(effects.wakes.size()), std::memory_order_relaxed);
  for (const Wake& wake : effects.wakes) {
    PollAnswer answer;
    answer.poll = wake.poll;
    answer.status = append_lock_answer(answer.body, wake.answer, LaneName());
    answer.sequence = effects.sequence;
    if (wake.answer.state == LockState::acquired) {
      answer.granted = wake.answer.token;
      answer.granted_at = effects.at;
    }
    deliver(links_[loop_of(wake.poll)], std::move(answer), from);
  }
}

void Service::deliver(const std::shared_ptr<LoopLink>& link, PollAnswer answer, LoopPort* from) {
  if (from && from == link->port) return from->answer_poll(answer);
  if (!link->mailbox.put(std::move(answer)) || planted(Plant::lost_letter)) return;
  post(link, [link = link.get()](LoopPort& port) {
    for (const PollAnswer& each : link->mailbox.take_all()) port.answer_poll(each);
  });
}

bool Service::expire_some(Effects& effects) {
  bool unfinished = false;  // somebody's end has still to be told to others (S34)
  const size_t looked_at = engine_->expire(now(), effects, kMostExpired, [&](Effects& step) {
    unfinished = unfinished || step.unfinished;
    gate_->unanswered(step);  // there is no answer that its events could overtake
    distribute(step, nullptr);
  });
  return looked_at == kMostExpired || unfinished;
}

void Service::tick() {
  metrics_.history().sample(metrics_.totals(), now());
  for (const std::shared_ptr<LoopLink>& link : links_)
    if (link->port->wants_ticks()) post(link, [](LoopPort& port) { port.tick(); });
}

void Service::take_snapshot(const std::stop_token& stop) {
  if (!journal_->wants_snapshot()) return;
  const Time start = now();
  const auto dump = [this](const Journal::Write& write) {
    Record mark;
    mark.kind = RecordKind::event_mark;
    mark.number = gate_->last_event();
    write(mark);
    write(life_mark());
    engine_->dump(write);
  };
  const Result<void> taken = journal_->snapshot(dump, stop);
  if (taken)
    log_info("snapshot taken", {{"ms", to_ms(now() - start)}});
  else if (!stop.stop_requested())
    log_warning("snapshot failed; the log keeps growing", {{"error", taken.error().message}});
}

}  // namespace turnstile
