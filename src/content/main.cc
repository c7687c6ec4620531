// turnstile-content: reads its settings, opens the store, serves it until a signal comes. Its commands have
// files of their own.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "base/daemon.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "base/systemd.h"
#include "content/alone_arbiter.h"
#include "content/background_verification.h"
#include "content/client_lock_server.h"
#include "content/content_store.h"
#include "content/export_command.h"
#include "content/identity.h"
#include "content/import_command.h"
#include "content/lock_arbiter.h"
#include "content/monitor.h"
#include "content/server.h"
#include "content/settings.h"
#include "content/shared_references.h"
#include "content/verify_command.h"

namespace turnstile::content {
namespace {

constexpr int kExitFailed = 1;  // may be better at the next try: a mount that comes late, a port still in use
constexpr int kExitUsage = 2;

int fail_with(const std::string& message, int code = kExitFailed) {
  std::fprintf(stderr, "turnstile-content: %s\n", message.c_str());
  return code;
}

// A directory that was named must be there: a mount that is missing must not look like nobody's references.
Outcome<std::unique_ptr<SharedReferences>> open_references(const Settings& settings) {
  if (settings.references_dir.empty()) return SharedReferences::open(settings.root + "/references", true);
  return SharedReferences::open(settings.references_dir, false);
}

struct Arbitration {
  std::unique_ptr<Arbiter> arbiter;
  int exit_code = 0;
  std::string error{};  // with an exit code
};

// The one place that chooses who decides.
Arbitration make_arbiter(const Settings& settings, const Identity& identity,
                         std::shared_ptr<Metrics> metrics) {
  if (settings.servers.empty()) {
    log_warning("no --server: this node pulls for itself alone");
    return {std::make_unique<AloneArbiter>()};
  }
  ClientSettings client_settings = ClientLockServer::client_settings(settings);
  Expected<LockClient> client = LockClient::create(client_settings);
  client_settings.max_retries = 0;
  Expected<LockClient> once = LockClient::create(client_settings);
  for (const Expected<LockClient>* made : {&client, &once})
    if (!*made) return {nullptr, kExitUsage, "connection to the lock server: " + made->error().message};
  auto server = std::make_unique<ClientLockServer>(std::move(*client), std::move(*once));
  if (const Expected<ServerLife> life = server->life(); life)  // else: seen when it is there
    if (const auto wrong = LockArbiter::wrong_references(*life, settings.references); wrong)
      return {nullptr, kExitUsage, *wrong};
  LockArbiter::Options options;
  if (settings.references == ReferencesBy::client) {
    Outcome<std::unique_ptr<SharedReferences>> shared = open_references(settings);
    if (!shared) return {nullptr, kExitFailed, "--references-dir: " + shared.error().message};
    options.references = std::make_shared<NodeReferences>(std::move(*shared), settings.node);
  }
  options.node = settings.node;
  options.identity = identity.for_server;
  options.machine = identity.for_people;
  options.without_server = settings.without_server;
  options.visible_within = settings.visible_within;
  options.settled_after = settings.settled_after;
  options.metrics = std::move(metrics);
  auto arbiter = std::make_unique<LockArbiter>(std::move(server), std::move(options));
  if (const std::optional<std::string> wrong = arbiter->claim_name()) return {nullptr, kExitFailed, *wrong};
  return {std::move(arbiter)};
}

// The socket that containerd connects to, if the service manager has made it; else none.
Result<UniqueFd> take_listener() {
  Result<std::vector<PassedSocket>> passed = take_passed_sockets();
  if (!passed) return std::unexpected(passed.error());
  if (passed->empty()) return UniqueFd();
  if (passed->size() > 1)
    return turnstile::fail("more than one socket was passed: which one is containerd's?");
  return std::move(passed->front().fd);
}

int run(const Settings& settings, const std::vector<std::string>& notices) {
  set_log(settings.log_level, LogFormat::text);
  for (const std::string& notice : notices) log_warning(notice);
  const DaemonSignals signals{SIGTERM, SIGINT, SIGHUP};  // before any thread starts
  Result<UniqueFd> listener = take_listener();
  if (!listener) return fail_with(listener.error().message, kExitUsage);

  const auto metrics = std::make_shared<Metrics>();
  Outcome<std::unique_ptr<NodeState>> state = NodeState::open(settings.state);
  if (!state) return fail_with(state.error().message);
  const bool used = !(*state)->is_empty();
  Outcome<BlobStore> blobs = BlobStore::open({settings.root, settings.read_roots, settings.node, used});
  if (!blobs) return fail_with(blobs.error().message);
  const Identity identity = identity_of(settings.state);
  // Before the lock server is asked: another machine of this name must not take its place there. On a full
  // disk, too, containerd must be able to read and to remove images; then Lives tries again.
  const Outcome<void> ours = blobs->take_possession((*state)->id(), identity.for_people);
  if (!ours && ours.error().code != ErrorClass::resource_exhausted) return fail_with(ours.error().message);
  Arbitration arbitration = make_arbiter(settings, identity, metrics);
  if (!arbitration.arbiter) return fail_with(arbitration.error, arbitration.exit_code);
  Lives::Options lives;
  lives.keep_unused = settings.keep_unused;
  lives.keep_unused_bytes = settings.keep_unused_bytes;
  lives.machine = identity.for_people;
  ContentStore store(std::move(*blobs), std::move(*state), std::move(arbitration.arbiter), metrics, lives);
  if (const Outcome<void> started = store.start(); !started) return fail_with(started.error().message);
  store.start_thread();
  const Result<std::unique_ptr<Server>> server =
      Server::start(store, settings.socket, std::move(*listener), settings.stalled_after);
  if (!server) return fail_with(server.error().message);
  std::optional<BackgroundVerification> verification;
  if (settings.verify_every.count() > 0) verification.emplace(store, *metrics, settings.verify_every);
  std::unique_ptr<Monitor> monitor;
  if (!settings.metrics_listen.empty()) {
    Result<std::unique_ptr<Monitor>> started = Monitor::start(settings.metrics_listen, store, *metrics);
    if (!started) return fail_with(started.error().message);
    monitor = std::move(*started);
    std::printf("metrics on %s\n", monitor->address().c_str());
  }
  std::printf("listening on unix:%s\n", settings.socket.c_str());
  std::fflush(stdout);
  notify_manager("READY=1");

  int signal = signals.wait();
  for (; signal == SIGHUP; signal = signals.wait())
    log_info("certificates and credential are read again, if they have changed");
  notify_manager("STOPPING=1");
  log_info("stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  (*server)->stop();
  if (const auto leaving = store.totals(Stage::leaving).blobs; leaving > 0)
    log_warning(
        "stopped before all that this node no longer uses was given up: that goes on at the next start",
        {{"blobs", leaving}});
  return 0;
}

// Everything but serving, which goes on without the line that says where it listens.
int run_command(const CommandLine& line) {
  if (line.run) {
    switch (line.run->command) {
      case Command::serve:
        break;
      case Command::verify:
        return run_verify(*line.run);
      case Command::import:
        return run_import(*line.run);
      case Command::export_store:
        return run_export(*line.run);
    }
  }
  write_output(line.print);
  return 0;
}

int main_with(int argc, char** argv) {
  const Result<CommandLine> line = read_command_line(argc, argv, from_environment);
  if (!line) return fail_with(line.error().message, kExitUsage);
  if (line->run && line->run->command == Command::serve) return run(*line->run, line->notices);
  return exit_after_output(run_command(*line), [](const std::string& fault) { fail_with(fault); });
}

}  // namespace
}  // namespace turnstile::content

int main(int argc, char** argv) {
  turnstile::fill_standard_descriptors();
  try {
    return turnstile::content::main_with(argc, argv);
  } catch (const std::exception& surprise) {
    std::fprintf(stderr, "turnstile-content: %s\n", surprise.what());
    return 1;
  }
}
