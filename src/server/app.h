// The daemon: owns what lives as long as the process, and the current life of the state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "server/common.h"
#include "server/replication.h"
#include "service/service.h"

namespace turnstile {

class LoopHandler;

// Starts and stops everything. The one place that chooses a store.
//
// Threads: start(), stop(), begin_life() and end_life() by the main thread; with several servers lives begin
// and end by the thread that finds out who leads. Everything else by any.
class App : private ReplicaOwner {
 public:
  // `passed`: sockets that listen already, at the addresses that the settings name.
  explicit App(Settings settings, std::vector<UniqueFd> passed = {});
  ~App() override;

  // Loads the store and begins to serve. The error is one line for stderr. `on_failed`: see
  // Service::OnFailed.
  Result<void> start(Service::OnFailed on_failed);
  std::vector<std::string> addresses() const;
  // Reads certificates again, for connections that come. After an error all is as before.
  Result<void> reload_tls();
  // SIGTERM: stop accepting, answer what is under way, close streams, flush. Within five seconds; what etcd
  // has not taken by then is left, and whoever waited for it does not know.
  void stop();

  // SIGHUP: credentials and the audit log's file are read and opened anew. What cannot be read stays as it
  // was, and the log says so. No connection ends but those of who is not known any more.
  void reload();

  // While connections stay: a new life of the state begins; the current one is dropped as a whole. Between
  // the two every command gets 503, or is sent to the server that leads.
  Result<void> begin_life(Service::OnFailed on_failed);
  Result<void> begin_life(std::unique_ptr<Journal> journal) override;
  void end_life() override;

 private:
  void tell(const ReplicaView& view) override;
  bool follows() const override { return true; }
  void follow(const Record& record) override;
  void followed(Time latest) override;
  void forget_followed() override { followed_.reset(); }
  Result<void> start_replicated();
  bool is_replicated() const { return !settings().replication.endpoints.empty(); }
  std::string url() const;
  Result<void> begin_life(std::unique_ptr<Journal> journal, Service::OnFailed on_failed);
  Result<void> open_access();
  std::vector<std::string> names_told() const;
  Result<std::unique_ptr<Journal>> open_journal() const;
  Result<void> make_service(std::unique_ptr<Journal> journal, Service::OnFailed on_failed);
  void start_service();
  // Runs `task(handler)` on each loop, and waits until all have.
  void on_each_loop(const std::function<void(LoopHandler&)>& task);
  void log_start() const;
  std::string metrics_text(Service* service);
  std::string version_json() const;
  std::string client_version_json() const;
  const Settings& settings() const { return common_.settings(); }

  Common common_;
  const unsigned loops_;
  const Time began_ = machine_time().wall();
  std::unique_ptr<Service> service_;       // none: another server leads, or none does
  std::unique_ptr<LoadedState> followed_;  // of a standby
  std::unique_ptr<Replication> replication_;
  std::vector<UniqueFd> passed_;        // until start()
  std::vector<LoopHandler*> handlers_;  // by loop; the server's
  std::unique_ptr<http::Server> server_;
};

}  // namespace turnstile
