// turnstiled: reads its settings, starts the App, waits for a signal.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>

#include "base/daemon.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "base/systemd.h"
#include "http/listener.h"
#include "server/app.h"
#include "server/copy_store.h"
#include "server/settings.h"

// jemalloc's settings, if that is what is linked: memory that was needed once is given back within seconds,
// by a thread of its own, so that no request pays for it (docs/decisions/0011-jemalloc.md).
extern "C" {
[[gnu::used, gnu::visibility("default")]] const char* malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:3000,muzzy_decay_ms:0";
}

namespace turnstile {
namespace {

constexpr int kExitUsage = 2;

// With 2 a service manager does not try again (packaging/turnstiled.service).
int fail_with(const Error& error) {
  std::fprintf(stderr, "turnstiled: %s\n", error.message.c_str());
  return http::says_in_use(error) ? EXIT_FAILURE : kExitUsage;
}

// Nothing that is not safe has left, and nothing may: a restart reads what is (S32, decision 0008). At once,
// because every destructor would be one more chance to do harm.
[[noreturn]] void give_up() { std::_Exit(1); }

// What the service manager has opened for us is what we listen on, and --listen says nothing then: two
// opinions about one address would be one too many.
Result<std::vector<UniqueFd>> take_listeners(Settings& settings) {
  Result<std::vector<PassedSocket>> passed = take_passed_sockets();
  if (!passed) return std::unexpected(passed.error());
  std::vector<UniqueFd> listeners;
  if (!passed->empty()) settings.listen.clear();
  for (PassedSocket& socket : *passed) {
    settings.listen.push_back(http::bound_address(socket.fd.get()));
    log_info("a socket was passed", {{"name", socket.name}, {"address", settings.listen.back()}});
    listeners.push_back(std::move(socket.fd));
  }
  if (Result<void> safe = check_listen(settings); !safe) return std::unexpected(safe.error());
  return listeners;
}

// What has been read from files that people renew. Connections stay as they are.
void reload(App& app) {
  if (const Result<void> reloaded = app.reload_tls(); !reloaded)
    log_error("SIGHUP: the old certificates stay in use", {{"error", reloaded.error().message}});
  else
    log_info("SIGHUP: certificates are read again");
  app.reload();
}

int run(Settings settings, const std::vector<std::string>& notices) {
  set_log(settings.log_level, settings.log_format);
  for (const std::string& notice : notices) log_warning(notice);
  const DaemonSignals signals{SIGTERM, SIGINT, SIGHUP};  // before any thread starts

  Result<std::vector<UniqueFd>> listeners = take_listeners(settings);
  if (!listeners) return fail_with(listeners.error());

  std::atomic<bool> failed{false};
  const auto on_failed = [&](const Error& error) {
    log_error("the journal failed; stopping at once", {{"error", error.message}});
    failed = true;
    signals.wake();
  };
  App app(std::move(settings), *std::move(listeners));
  if (const Result<void> started = app.start(on_failed); !started) return fail_with(started.error());
  for (const std::string& address : app.addresses()) std::printf("listening on %s\n", address.c_str());
  std::fflush(stdout);
  notify_manager("READY=1");

  int signal = signals.wait();
  for (; signal == SIGHUP; signal = signals.wait()) reload(app);
  if (failed) give_up();
  notify_manager("STOPPING=1");
  log_info("stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  app.stop();
  if (failed) give_up();
  return 0;
}

// Of what prints something and ends. A server goes on without the line that says where it listens.
int exit_after_printing() {
  return exit_after_output(EXIT_SUCCESS, [](const std::string& fault) {
    std::fprintf(stderr, "turnstiled: %s\n", fault.c_str());
  });
}

int copy(const Settings& settings) {
  set_log(LogLevel::warning, settings.log_format);
  const Result<uint64_t> copied = copy_store(settings);
  if (!copied) return fail_with(copied.error());
  std::printf("%llu records copied from %s to %s\n", static_cast<unsigned long long>(*copied),
              settings.copy_from.c_str(), settings.store.c_str());
  return exit_after_printing();
}

int main_with(int argc, char** argv) {
  Result<CommandLine> line = read_command_line(argc, argv, from_environment);
  if (!line) return fail_with(line.error());
  if (line->run && !line->run->copy_from.empty()) return copy(*line->run);
  std::ranges::move(unknown_variables(environ), std::back_inserter(line->notices));
  if (line->run) return run(*line->run, line->notices);
  write_output(line->print);
  return exit_after_printing();
}

}  // namespace
}  // namespace turnstile

int main(int argc, char** argv) {
  turnstile::fill_standard_descriptors();
  try {
    return turnstile::main_with(argc, argv);
  } catch (const std::exception& surprise) {
    std::fprintf(stderr, "turnstiled: %s\n", surprise.what());
    return 1;
  }
}
