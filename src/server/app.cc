#include "server/app.h"

#include <fmt/format.h>

#include <latch>
#include <thread>

#include "api/json_append.h"
#include "base/log.h"
#include "base/version.h"
#include "server/loop_handler.h"

namespace turnstile {
namespace {

constexpr std::chrono::seconds kStopWithin{4};

// One core is left to the journal, the kernel's share of the network and whoever else lives here (decision
// 0009).
unsigned loops_of(const Settings& settings) {
  const unsigned cores = std::max(2u, std::thread::hardware_concurrency());
  return settings.threads > 0 ? settings.threads : std::min(cores - 1, 128u);
}

}  // namespace

App::App(Settings settings, std::vector<UniqueFd> passed)
    : common_(std::move(settings)), loops_(loops_of(this->settings())), passed_(std::move(passed)) {
  common_.on_metrics = [this](Service* service) { return metrics_text(service); };
  common_.version = version_json();
}

// The loops' threads end first, because they use the service; the loops themselves last, because it posts to
// them until it has ended.
App::~App() {
  if (server_) server_->shutdown({});
  service_.reset();
}

Result<std::unique_ptr<Journal>> App::open_journal() const {
  if (settings().store == "memory") return make_memory_journal();
  return open_file_journal(settings().store.substr(sizeof "file:" - 1), {});
}

Result<void> App::make_service(Service::OnFailed on_failed) {
  Result<std::unique_ptr<Journal>> journal = open_journal();
  if (!journal) return std::unexpected(journal.error());
  Result<std::unique_ptr<Service>> service =
      Service::begin(settings().engine, *std::move(journal), loops_, common_.metrics(), std::move(on_failed));
  if (!service) return std::unexpected(service.error());
  service_ = *std::move(service);
  return {};
}

Result<void> App::start(Service::OnFailed on_failed) {
  if (Result<void> made = make_service(std::move(on_failed)); !made) return made;
  http::ServerSettings http;
  http.listen = settings().listen;
  http.passed = std::move(passed_);
  http.loops = loops_;
  http.limits = settings().http;
  http.handler = [this](http::Loop& loop) {
    auto handler = std::make_unique<LoopHandler>(common_, loop);
    handler->begin_life(*service_);
    service_->attach(loop.index(), *handler);
    handlers_.push_back(handler.get());
    return handler;
  };
  server_ = std::make_unique<http::Server>(std::move(http));
  if (Result<void> started = server_->start(); !started) return started;
  service_->start();
  log_start();  // only now: a server that cannot start says only why
  return {};
}

Result<void> App::begin_life(Service::OnFailed on_failed) {
  if (Result<void> made = make_service(std::move(on_failed)); !made) return made;
  for (unsigned loop = 0; loop < loops_; ++loop) service_->attach(loop, *handlers_[loop]);
  on_each_loop([this](LoopHandler& handler) { handler.begin_life(*service_); });
  service_->start();
  return {};
}

void App::end_life() {
  service_->detach();
  on_each_loop([](LoopHandler& handler) { handler.end_life(); });
  service_.reset();
}

void App::on_each_loop(const std::function<void(LoopHandler&)>& task) {
  std::latch done(ptrdiff_t(handlers_.size()));
  for (LoopHandler* handler : handlers_) {
    handler->post([&task, &done, handler] {
      task(*handler);
      done.count_down();
    });
  }
  done.wait();
}

void App::log_start() const {
  const Service::Loaded& loaded = service_->loaded();
  if (loaded.journal.cut_torn_tail)
    log_warning(
        "the last write before the stop was incomplete, and has been cut off; nobody had been answered",
        {{"file", loaded.journal.cut_file}, {"at", loaded.journal.cut_at}});
  log_info("recovered", {{"store", settings().store},
                         {"records", loaded.journal.records},
                         {"held", loaded.engine.holds},
                         {"waiting", loaded.engine.waiters},
                         {"ms", loaded.took.count()}});
}

std::vector<std::string> App::addresses() const { return server_->addresses(); }

void App::stop() {
  common_.begin_to_stop();
  server_->stop_accepting();
  for (LoopHandler* handler : handlers_)
    handler->post([handler] { handler->shut_down(ErrorCode::shutting_down); });
  server_->shutdown(kStopWithin);
  service_.reset();
}

std::string App::metrics_text(Service* service) {
  Metrics& metrics = common_.metrics();
  const http::Statistics& http = server_->statistics();
  metrics.set_gauge("turnstile_connections", "Connections open now", double(http.connections_open.load()));
  metrics.set_gauge("turnstile_streams", "Event streams open now", double(common_.streams()));
  metrics.set_gauge("turnstile_streams_cut",
                    "Event streams cut off because their reader was too slow, since the start",
                    double(http.streams_cut.load()));
  if (service != nullptr)
    metrics.set_gauge("turnstile_resources", "Resources that anything is known of",
                      double(service->engine().resource_count()));
  return metrics.text();
}

std::string App::version_json() const {
  std::string out = fmt::format(R"({{"version":"{}","compiler":"{}","settings":{{)", kVersion, __VERSION__);
  bool first = true;
  for (const SettingRow& row : setting_rows()) {
    if (!row.show) continue;
    if (!std::exchange(first, false)) out += ',';
    append_json_text(out, row.name);
    out += ':';
    append_json_text(out, row.show(settings()));
  }
  return out + "}}";
}

}  // namespace turnstile
