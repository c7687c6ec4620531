#include "server/app.h"

#include <fmt/format.h>

#include <condition_variable>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>

#include "api/json_append.h"
#include "base/log.h"
#include "base/version.h"
#include "server/loop_handler.h"
#include "server/readings.h"

namespace turnstile {
namespace {

constexpr std::chrono::seconds kStopWithin{4};  // until who is connected has been answered
constexpr std::chrono::seconds kGiveUpAfter{
    5};  // all of it; systemd waits ten (packaging/turnstiled.service)

// Does something after a while, unless it is destroyed before.
class Alarm {
 public:
  Alarm(std::chrono::seconds after, std::function<void()> what)
      : thread_([this, after, what = std::move(what)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          changed_.wait_for(lock, stop, after, [] { return false; });
          if (!stop.stop_requested()) what();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

// One core is left to the journal, the kernel's share of the network and whoever else lives here (decision
// 0009).
unsigned loops_of(const Settings& settings) {
  const unsigned cores = std::max(2u, std::thread::hardware_concurrency());
  return settings.threads > 0 ? settings.threads : std::min(cores - 1, 128u);
}

// When a leader's machine loses its power, nobody is told. A client of ours hears nothing for twice its
// heartbeat, or a slice of a long poll, before it looks for the next leader; its bonds count until then.
Settings with_time_to_miss_a_leader(Settings settings) {
  constexpr std::chrono::seconds kMissedWithin{20};
  if (!settings.replication.endpoints.empty()) settings.engine.restored_bond_grace = kMissedWithin;
  return settings;
}

}  // namespace

App::App(Settings settings, std::vector<UniqueFd> passed)
    : common_(with_time_to_miss_a_leader(std::move(settings))),
      loops_(loops_of(this->settings())),
      passed_(std::move(passed)) {
  common_.on_metrics = [this](Service* service) { return metrics_text(service); };
  common_.version = version_json();
  common_.on_servers = [this] {
    return replication_ ? replication_->servers_json() : single_server_json(url(), began_);
  };
  common_.client_version = client_version_json();
}

// The loops' threads end first, because they use the service; the loops themselves last, because it posts to
// them until it has ended.
App::~App() {
  if (replication_) replication_->stop_turns();
  if (server_) server_->shutdown({});
  service_.reset();
  replication_.reset();
}

Result<std::unique_ptr<Journal>> App::open_journal() const {
  if (settings().store == "memory") return make_memory_journal();
  return open_file_journal(settings().store.substr(sizeof "file:" - 1), {});
}

Result<void> App::make_service(std::unique_ptr<Journal> journal, Service::OnFailed on_failed) {
  Result<std::unique_ptr<Service>> service =
      Service::begin(settings().engine, std::move(journal), loops_, common_.metrics(), std::move(on_failed),
                     machine_time(), std::exchange(followed_, nullptr));
  if (!service) return std::unexpected(service.error());
  service_ = *std::move(service);
  return {};
}

Result<void> App::open_access() {
  AccessState& access = common_.access();
  access.open_metrics = settings().open_metrics;
  if (!settings().credentials.empty()) {
    Result<access::CredentialsPtr> read = access::Credentials::read(settings().credentials);
    if (!read) return std::unexpected(read.error());
    access.credentials = *std::move(read);
  } else if (!settings().tls.client_ca.empty()) {
    access.credentials = access::Credentials::of_certificates();
  }
  Result<std::unique_ptr<access::AuditLog>> audit = access::AuditLog::open(settings().audit_log);
  if (!audit) return std::unexpected(audit.error());
  access.audit = *std::move(audit);
  return {};
}

// By which others say that they reach us.
std::vector<std::string> App::names_told() const {
  std::vector<std::string> names = settings().hosts;
  std::string_view advertised = settings().replication.advertise;
  if (const size_t scheme = advertised.find("://"); scheme != advertised.npos)
    advertised.remove_prefix(scheme + 3);
  advertised = advertised.substr(0, advertised.find('/'));
  if (!advertised.empty()) names.emplace_back(advertised);
  return names;
}

void App::reload() {
  AccessState& access = common_.access();
  access.audit->reopen();
  std::string_view outcome = "ok";
  if (!settings().credentials.empty()) {
    const Result<access::CredentialsPtr> read = access::Credentials::read(settings().credentials);
    if (read) {
      on_each_loop([&](LoopHandler& handler) { handler.change_credentials(*read); });
      log_info("SIGHUP: the credentials have been read again", {{"entries", (*read)->size()}});
    } else {
      outcome = "failed";
      log_error("SIGHUP: the credentials stay as they were", {{"error", read.error().message}});
    }
  } else {
    log_info("SIGHUP: there are no credentials to read again");
  }
  access.note({"reload", {}, {}, settings().credentials, {}, {}, outcome});
}

Result<void> App::start(Service::OnFailed on_failed) {
  if (Result<void> opened = open_access(); !opened) return opened;
  if (is_replicated()) {
    Result<std::unique_ptr<Replication>> made = Replication::make(settings().replication, common_);
    if (!made) return std::unexpected(made.error());
    replication_ = *std::move(made);
    common_.set_standing({.replicated = true, .in_step = false, .leader = {}, .term = 0});
  } else {
    Result<std::unique_ptr<Journal>> journal = open_journal();
    if (!journal) return std::unexpected(journal.error());
    if (Result<void> made = make_service(*std::move(journal), std::move(on_failed)); !made) return made;
  }
  http::ServerSettings http;
  http.listen = settings().listen;
  http.passed = std::move(passed_);
  http.loops = loops_;
  http.limits = settings().http;
  http.tls = settings().tls;
  http.handler = [this](http::Loop& loop) {
    if (handlers_.empty()) {  // before any request comes, and with the ports that were really taken
      common_.access().names =
          access::OwnNames(server_->addresses(), names_told(), server_->certificate_names());
      if (replication_) replication_->prepare(url(), *this);
    }
    auto handler = std::make_unique<LoopHandler>(common_, loop);
    if (service_) {
      handler->begin_life(*service_);
      service_->attach(loop.index(), *handler);
    }
    handlers_.push_back(handler.get());
    return handler;
  };
  server_ = std::make_unique<http::Server>(std::move(http));
  if (Result<void> started = server_->start(); !started) return started;
  if (replication_) return replication_->start();
  service_->start();
  log_start();  // only now: a server that cannot start says only why
  return {};
}

Result<void> App::begin_life(Service::OnFailed on_failed) {
  Result<std::unique_ptr<Journal>> journal = open_journal();
  if (!journal) return std::unexpected(journal.error());
  return begin_life(*std::move(journal), std::move(on_failed));
}

// This server was elected. Any doubt about what was written ends the term, not the process.
Result<void> App::begin_life(std::unique_ptr<Journal> journal) {
  return begin_life(std::move(journal), [this](const Error& error) { replication_->doubt(error.message); });
}

Result<void> App::begin_life(std::unique_ptr<Journal> journal, Service::OnFailed on_failed) {
  if (Result<void> made = make_service(std::move(journal), std::move(on_failed)); !made) return made;
  for (unsigned loop = 0; loop < loops_; ++loop) service_->attach(loop, *handlers_[loop]);
  on_each_loop([this](LoopHandler& handler) { handler.begin_life(*service_); });
  service_->start();
  log_start();
  return {};
}

void App::end_life() {
  service_->detach();
  on_each_loop([](LoopHandler& handler) { handler.end_life(); });
  service_.reset();
}

void App::follow(const Record& record) {
  if (!followed_) followed_ = std::make_unique<LoadedState>(settings().engine);
  followed_->load(record);
}

void App::followed(Time latest) {
  if (followed_) followed_->passed(latest);
}

void App::tell(const ReplicaView& view) {
  // Who leads is asked here only while this server has no life of the state. It may still be named then,
  // because its term has just ended: nobody is to be sent back here.
  const bool names_itself = view.role == ReplicaRole::leader;
  common_.set_standing({.replicated = true,
                        .in_step = view.in_step,
                        .leader = names_itself ? std::string() : view.leader,
                        .term = view.term});
}

// How others reach this server, as far as it can know.
std::string App::url() const {
  if (!settings().replication.advertise.empty()) return settings().replication.advertise;
  std::string address = server_ ? server_->addresses().front() : settings().listen.front();
  if (address.starts_with("unix:") || address.find("://") != std::string::npos) return address;
  return "http://" + address;
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

Result<void> App::reload_tls() { return server_->reload_tls(); }

std::vector<std::string> App::addresses() const { return server_->addresses(); }

// An etcd that renews leases and takes no writes (it is full, or its disk stands still) would keep this
// server for ever, and with it the lead: after a while the term ends, and what waits for it.
void App::stop() {
  std::optional<Alarm> alarm;
  if (replication_) {
    alarm.emplace(kGiveUpAfter, [this] {
      log_warning("etcd does not accept the last writes; stopping without them");
      replication_->give_up();
    });
    replication_->stop_turns();
  }
  common_.begin_to_stop();
  server_->stop_accepting();
  for (LoopHandler* handler : handlers_)
    handler->post([handler] { handler->shut_down(ErrorCode::shutting_down); });
  server_->shutdown(kStopWithin);
  if (replication_) {
    if (service_) service_->close();  // freeing it takes a while, which the next need not wait for
    alarm.reset();
    replication_->hand_over();
  }
  service_.reset();
}

std::string App::metrics_text(Service* service) {
  std::string text = common_.metrics().text();
  common_.access().append_metrics(text);
  append_readings(text, settings(), server_->statistics(), common_.streams(), service);
  if (replication_) replication_->append_metrics(text);
  return text;
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

// What a node's program must know of the server (decision 0029).
std::string App::client_version_json() const {
  return fmt::format(R"({{"version":"{}","settings":{{"references":"{}","store":"{}"}}}})", kVersion,
                     settings().engine.server_keeps_references ? "server" : "client",
                     settings().store.substr(0, settings().store.find(':')));
}

}  // namespace turnstile
