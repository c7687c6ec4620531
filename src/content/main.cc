// turnstile-content: reads its settings, opens the store, serves it until a signal comes.
#include <cstdio>
#include <exception>

#include "base/daemon.h"
#include "base/log.h"
#include "content/alone_arbiter.h"
#include "content/content_store.h"
#include "content/lock_arbiter.h"
#include "content/monitor.h"
#include "content/server.h"
#include "content/settings.h"
#include "content/shared_references.h"

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

// None without --server. An error is one of the settings: starting again would not help.
Result<std::optional<LockClient>> make_client(const Settings& settings) {
  if (settings.servers.empty()) return std::nullopt;
  Expected<LockClient> client = LockClient::create(LockArbiter::client_settings(settings));
  if (!client) return turnstile::fail("--server: " + client.error().message);
  if (const Expected<std::string> version = client->version(); version)  // else: seen when it is there
    if (const auto wrong = LockArbiter::wrong_references(*version, settings.references); wrong)
      return turnstile::fail(*wrong);
  return std::move(*client);
}

// The one place that chooses who decides. `state` must live as long as the arbiter.
Result<std::unique_ptr<Arbiter>> make_arbiter(const Settings& settings, std::optional<LockClient> client,
                                              const NodeState& state, std::shared_ptr<Metrics> metrics) {
  if (!client) {
    log_warning("no --server: this node pulls for itself alone");
    return std::make_unique<AloneArbiter>();
  }
  Outcome<std::shared_ptr<Unsettled>> unsettled = Unsettled::open(settings.state);
  if (!unsettled) return turnstile::fail(unsettled.error().message);
  Outcome<BlobStore> opened = BlobStore::open({settings.root, settings.read_roots, settings.node, false});
  if (!opened) return turnstile::fail(opened.error().message);
  auto blobs = std::make_shared<const BlobStore>(std::move(*opened));  // a function is copied
  LockArbiter::Options options;
  if (settings.references == ReferencesBy::client) {
    Outcome<std::unique_ptr<SharedReferences>> shared = open_references(settings);
    if (!shared) return turnstile::fail("--references-dir: " + shared.error().message);
    options.references = std::make_shared<NodeReferences>(std::move(*shared), settings.node);
  }
  options.without_server = settings.without_server;
  options.visible_within = settings.visible_within;
  options.metrics = std::move(metrics);
  options.uses = [&state](const Digest& digest) { return state.size_of(digest).has_value(); };
  options.is_there = [blobs](const Digest& digest) { return blobs->find(digest).has_value(); };
  options.remove = [blobs](const Digest& digest) { return blobs->remove(digest, true); };
  return std::make_unique<LockArbiter>(std::move(*client), std::move(*unsettled), std::move(options));
}

int run(const Settings& settings) {
  set_log(settings.log_level, LogFormat::text);
  const DaemonSignals signals{SIGTERM, SIGINT};  // before any thread starts

  const auto metrics = std::make_shared<Metrics>();
  Outcome<std::unique_ptr<NodeState>> state = NodeState::open(settings.state);
  if (!state) return fail_with(state.error().message);
  const bool used = !(*state)->list().empty() || !(*state)->removals().empty();
  Outcome<BlobStore> blobs = BlobStore::open({settings.root, settings.read_roots, settings.node, used});
  if (!blobs) return fail_with(blobs.error().message);
  Result<std::optional<LockClient>> client = make_client(settings);
  if (!client) return fail_with(client.error().message, kExitUsage);
  Result<std::unique_ptr<Arbiter>> arbiter = make_arbiter(settings, std::move(*client), **state, metrics);
  if (!arbiter) return fail_with(arbiter.error().message);
  ContentStore store(std::move(*blobs), std::move(*state), std::move(*arbiter), metrics);
  if (const Outcome<void> started = store.start(); !started) return fail_with(started.error().message);
  const Result<std::unique_ptr<Server>> server = Server::start(store, settings.socket);
  if (!server) return fail_with(server.error().message);
  std::unique_ptr<Monitor> monitor;
  if (!settings.metrics_listen.empty()) {
    Result<std::unique_ptr<Monitor>> started = Monitor::start(settings.metrics_listen, store, *metrics);
    if (!started) return fail_with(started.error().message);
    monitor = std::move(*started);
    std::printf("metrics on %s\n", monitor->address().c_str());
  }
  std::printf("listening on unix:%s\n", settings.socket.c_str());
  std::fflush(stdout);

  const int signal = signals.wait();
  log_info("stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  (*server)->stop();
  return 0;
}

int main_with(int argc, char** argv) {
  const Result<CommandLine> line = read_command_line(argc, argv, from_environment);
  if (!line) return fail_with(line.error().message, kExitUsage);
  if (line->run) return run(*line->run);
  std::fputs(line->print.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace turnstile::content

int main(int argc, char** argv) {
  try {
    return turnstile::content::main_with(argc, argv);
  } catch (const std::exception& surprise) {
    std::fprintf(stderr, "turnstile-content: %s\n", surprise.what());
    return 1;
  }
}
