// The daemon: owns what lives as long as the process, and the current life of the state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "server/common.h"
#include "service/service.h"

namespace turnstile {

class LoopHandler;

// Starts and stops everything. The one place that chooses a store.
//
// Threads: start(), stop(), begin_life() and end_life() by the main thread; everything else by any.
class App {
 public:
  // `passed`: sockets that listen already, at the addresses that the settings name.
  explicit App(Settings settings, std::vector<UniqueFd> passed = {});
  ~App();

  // Loads the store and begins to serve. The error is one line for stderr. `on_failed`: see
  // Service::OnFailed.
  Result<void> start(Service::OnFailed on_failed);
  std::vector<std::string> addresses() const;
  // SIGTERM: stop accepting, answer what is under way, close streams, flush. Within five seconds.
  void stop();

  // While connections stay: a new life of the state begins; the current one is dropped as a whole. Between
  // the two every command gets 503.
  Result<void> begin_life(Service::OnFailed on_failed);
  void end_life();

 private:
  Result<std::unique_ptr<Journal>> open_journal() const;
  Result<void> make_service(Service::OnFailed on_failed);
  void start_service();
  // Runs `task(handler)` on each loop, and waits until all have.
  void on_each_loop(const std::function<void(LoopHandler&)>& task);
  void log_start() const;
  std::string metrics_text(Service* service);
  std::string version_json() const;
  const Settings& settings() const { return common_.settings(); }

  Common common_;
  const unsigned loops_;
  std::unique_ptr<Service> service_;
  std::vector<UniqueFd> passed_;        // until start()
  std::vector<LoopHandler*> handlers_;  // by loop; the server's
  std::unique_ptr<http::Server> server_;
};

}  // namespace turnstile
