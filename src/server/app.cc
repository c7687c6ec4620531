#include "server/app.h"

#include <fmt/format.h>

#include <thread>

#include "api/answer_writer.h"
#include "api/event_json.h"
#include "api/json_append.h"
#include "base/log.h"
#include "base/version.h"
#include "server/housekeeper.h"
#include "server/loop_handler.h"

namespace turnstile {
namespace {

constexpr std::chrono::seconds kStopWithin{4};

// Where tokens and event ids of this life begin: a clock that a restored backup cannot turn back (X8). One
// number for each microsecond is more than are ever used, and 2^53 of them last until the year 2305.
uint64_t first_number(Time now) {
  using namespace std::chrono;
  return uint64_t((now - Time(sys_days(year(2020) / 1 / 1))).count());
}

}  // namespace

App::App(Settings settings) : settings_(std::move(settings)), metrics_(settings_.engine.operations) {}

App::~App() = default;

Result<std::unique_ptr<Journal>> App::open_journal() const {
  if (settings_.store == "memory") return make_memory_journal();
  return open_file_journal(settings_.store.substr(sizeof "file:" - 1), {});
}

Result<void> App::start() {
  Result<std::unique_ptr<Journal>> journal = open_journal();
  if (!journal) return fail(journal.error().message);
  journal_ = *std::move(journal);
  pipeline_ = std::make_unique<CommitPipeline>(*journal_,
                                               [this](double seconds) { metrics_.observe_commit(seconds); });
  engine_ = std::make_unique<Engine>(settings_.engine, *pipeline_, Token::none);

  // One core is left to the journal, the kernel's share of the network and whoever else lives here (decision
  // 0009).
  const unsigned cores = std::max(2u, std::thread::hardware_concurrency());
  const unsigned threads = settings_.threads > 0 ? settings_.threads : std::min(cores - 1, 128u);
  for (unsigned i = 0; i < threads; ++i) loops_.push_back(std::make_unique<PerLoop>());
  if (Result<void> recovered = recover(); !recovered) return recovered;

  http::ServerSettings http;
  http.listen = settings_.listen;
  http.loops = threads;
  http.limits = settings_.http;
  http.handler = [this](http::Loop& loop) {
    auto handler = std::make_unique<LoopHandler>(*this, loop);
    loops_[loop.index()]->loop = &loop;
    loops_[loop.index()]->handler = handler.get();
    return handler;
  };
  server_ = std::make_unique<http::Server>(std::move(http));
  if (Result<void> started = server_->start(); !started) return started;
  serving_.store(true, std::memory_order_release);
  log_recovery_();
  housekeeper_ = std::make_unique<Housekeeper>(*this);
  return {};
}

Result<void> App::recover() {
  const auto start = std::chrono::steady_clock::now();
  const Result<Recovered> recovered =
      journal_->recover([this](const Record& record) { engine_->load(record); });
  if (!recovered) return fail(recovered.error().message);
  clock_ = std::make_unique<Clock>(recovered->latest);
  const uint64_t first = first_number(clock_->now());
  engine_->raise_tokens(Token(first));

  EventLogSettings log_settings;
  log_settings.durable_store = journal_->keeps_records();
  event_log_ = std::make_unique<EventLog>(first, log_settings);
  router_ = std::make_unique<Router>(
      *event_log_,
      [](uint64_t id, const Event& event) {
        std::string text;
        append_sse_event(text, id, event);
        return text;
      },
      [this](unsigned loop, std::vector<Delivery>&& deliveries) {
        deliver_events(loop, std::move(deliveries));
      });
  pipeline_->attach(*event_log_, *router_);

  journal_->start([this](uint64_t sequence) { on_durable(sequence); },
                  [](const Error& error) {
                    // Nothing that is not safe has left, and nothing may: a restart reads what is (S32).
                    log_error("the journal failed; stopping at once", {{"error", error.message}});
                    std::_Exit(1);
                  });
  Effects effects;
  const Engine::Loaded loaded = engine_->finish_load(now(), effects, [this](Effects& step) {
    router_->release(StepId(step.step));  // what it grants is counted with all that is held, below
  });
  engine_->for_each_lane([this](std::string_view operation, bool held, size_t waiters) {
    metrics_.add_loaded(operation, held, waiters);
  });
  log_recovery_ = [this, recovered = *recovered, loaded, took = std::chrono::steady_clock::now() - start] {
    if (recovered.cut_torn_tail)
      log_warning(
          "the last write before the stop was incomplete, and has been cut off; nobody had been answered",
          {{"file", recovered.cut_file}, {"at", recovered.cut_at}});
    log_info("recovered", {{"store", settings_.store},
                           {"records", recovered.records},
                           {"held", loaded.holds},
                           {"waiting", loaded.waiters},
                           {"ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()}});
  };
  return {};
}

std::vector<std::string> App::addresses() const { return server_->addresses(); }

void App::stop() {
  stopping_ = true;
  server_->stop_accepting();
  for (auto& per_loop : loops_) per_loop->loop->post([handler = per_loop->handler] { handler->shut_down(); });
  server_->shutdown(kStopWithin);
  housekeeper_.reset();
  journal_->stop();
}

void App::distribute(Effects& effects, LoopHandler* from) {
  metrics_.observe(effects.measures);
  for (const Wake& wake : effects.wakes) {
    ReadyAnswer answer;
    answer.connection = http::ConnectionId(uint64_t(wake.poll));
    answer.status = append_lock_answer(answer.body, wake.answer, LaneName());
    answer.release = effects.sequence;
    if (wake.answer.state == LockState::acquired) answer.granted_at = effects.at;
    const unsigned index = http::loop_of(answer.connection);
    if (from != nullptr && from->index() == index) {
      from->deliver(answer);
      continue;
    }
    PerLoop& target = *loops_[index];
    if (!target.mailbox.put(std::move(answer))) continue;
    target.loop->post([&target] {
      for (const ReadyAnswer& each : target.mailbox.take_all()) target.handler->deliver(each);
    });
  }
}

// A loop is woken only when one of its answers waits, and once, however many batches come before it looks. It
// has said what it waits for before it looked at durable() for the last time, so one of the two sees the
// other.
bool App::await_durable(unsigned loop, uint64_t sequence) {
  if (sequence <= journal_->durable()) return true;
  std::atomic<uint64_t>& awaited = loops_[loop]->awaited;
  awaited.store(std::max(awaited.load(), sequence));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return sequence <= journal_->durable();
}

// On the journal's thread.
void App::on_durable(uint64_t sequence) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (auto& per_loop : loops_) {
    PerLoop& target = *per_loop;
    uint64_t awaited = target.awaited.load();
    if (awaited == 0 || !serving_.load(std::memory_order_acquire)) continue;
    if (awaited <= sequence) target.awaited.compare_exchange_strong(awaited, 0);
    if (target.release_posted.exchange(true)) continue;
    target.loop->post([this, &target] {
      target.release_posted = false;
      target.handler->release(journal_->durable());
    });
  }
  pipeline_->durable(sequence);
}

void App::deliver_events(unsigned loop, std::vector<Delivery>&& deliveries) {
  PerLoop& target = *loops_[loop];
  auto shared = std::make_shared<std::vector<Delivery>>(std::move(deliveries));
  target.loop->post([&target, shared] { target.handler->deliver_events(*shared); });
}

void App::tick() {
  if (streams_ == 0) return;
  for (auto& per_loop : loops_) per_loop->loop->post([handler = per_loop->handler] { handler->tick(); });
}

bool App::open_stream() {
  if (streams_.fetch_add(1) < settings_.max_streams) return true;
  --streams_;
  return false;
}

std::string App::metrics_text() {
  const http::Counters& http = server_->counters();
  metrics_.set_gauge("turnstile_connections", "Connections open now", double(http.connections_open.load()));
  metrics_.set_gauge("turnstile_streams", "Event streams open now", double(streams_.load()));
  metrics_.set_gauge("turnstile_streams_cut",
                     "Event streams cut off because their reader was too slow, since the start",
                     double(http.streams_cut.load()));
  metrics_.set_gauge("turnstile_resources", "Resources that anything is known of",
                     double(engine_->resource_count()));
  return metrics_.text();
}

std::string App::version_json() const {
  std::string out = fmt::format(R"({{"version":"{}","compiler":"{}","settings":{{)", kVersion, __VERSION__);
  bool first = true;
  for (const SettingRow& row : setting_rows()) {
    if (!row.show) continue;
    if (!std::exchange(first, false)) out += ',';
    append_json_text(out, row.name);
    out += ':';
    append_json_text(out, row.show(settings_));
  }
  return out + "}}";
}

}  // namespace turnstile
