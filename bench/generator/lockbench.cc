// lockbench: load on one lock server from one thread, reported as one line of JSON.
//
// This file runs one mode (modes.h, modes_once.h) and reports. bench/README.md says what is measured. It
// knows nothing of the server's code, and is built by bench/systems.py with one call of g++, so that it can
// be used anywhere.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "connections.h"
#include "measure.h"
#include "modes_once.h"
#include "options.h"
#include "wire.h"

namespace {

// Serves replies and timers until `deadline_ns` or, if asked, until the mode is idle.
void serve(Bench& bench, Mode& mode, uint64_t deadline_ns, bool until_idle) {
  while (!(until_idle && mode.idle())) {
    uint64_t now = now_ns();
    if (now >= deadline_ns) return;
    uint64_t wake = std::max(now, std::min(deadline_ns, mode.wake_at()));
    bench.connections->poll(int((wake - now + 999'999) / 1'000'000));
    mode.on_time(now_ns());
  }
}

uint64_t after(double seconds) { return now_ns() + uint64_t(seconds * 1e9); }

struct Window {
  Snapshot from, to;
  double seconds() const { return double(to.time_ns - from.time_ns) / 1e9; }
};

// Warm up, measure for --seconds, then let everything under way end so that no lock stays behind.
Window run_timed(Bench& bench, Mode& mode) {
  constexpr double kDrainSeconds = 15;
  Window window;
  mode.begin();
  serve(bench, mode, after(bench.options.warmup), false);
  window.from = Snapshot::take(bench.server);
  bench.measuring = true;
  serve(bench, mode, after(bench.options.seconds), false);
  bench.measuring = false;
  window.to = Snapshot::take(bench.server);
  bench.stopping = true;
  serve(bench, mode, after(kDrainSeconds), true);
  if (!mode.idle()) {
    std::fprintf(stderr, "lockbench: some requests were never answered\n");
    ++bench.errors;
  }
  return window;
}

// Hold, churn and idle: do it once, then (idle) measure what keeping it costs for --seconds.
Window run_once(Bench& bench, Mode& mode, bool then_watch) {
  constexpr double kLimitSeconds = 600;
  Window window;
  window.from = Snapshot::take(bench.server);
  mode.begin();
  serve(bench, mode, after(kLimitSeconds), true);
  if (!mode.idle()) throw std::runtime_error("some requests were never answered");
  if (then_watch) {
    window.from = Snapshot::take(bench.server);
    serve(bench, mode, after(bench.options.seconds), false);
  }
  window.to = Snapshot::take(bench.server);
  return window;
}

// Redis runs a script by its hash, and only Redis needs to be told the script first.
std::string load_release_script(int port) {
  int fd = connect_to(port);
  std::string request = RedisWire::command({"SCRIPT", "LOAD", RedisWire::kReleaseScript});
  char answer[128];
  ssize_t got =
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0 ? recv(fd, answer, sizeof answer, 0) : -1;
  close(fd);
  std::string text(answer, size_t(std::max<ssize_t>(got, 0)));
  if (text.rfind("$40\r\n", 0) != 0 || text.size() < 45) throw std::runtime_error("SCRIPT LOAD: " + text);
  return text.substr(5, 40);
}

std::unique_ptr<Wire> make_wire(const Options& options) {
  std::string type = options.type;
  if (type.empty()) type = options.mode == "fanout" ? "pull" : "lock";
  if (options.protocol == "http") return std::make_unique<HttpWire>(type);
  if (options.protocol == "nginx") return std::make_unique<FloorWire>(type);
  constexpr int kHour = 3'600'000, kHalfMinute = 30'000;
  return std::make_unique<RedisWire>(load_release_script(options.port),
                                     options.mode == "hold" ? kHour : kHalfMinute);
}

void run(const Options& options) {
  std::unique_ptr<Wire> wire = make_wire(options);
  Bench bench{.options = options,
              .wire = *wire,
              .server = ServerProbe(options.server_pids),
              .connections = nullptr,
              .latencies = {}};
  const std::string& name = options.mode;
  std::unique_ptr<Mode> mode;
  if (name == "pair") mode = std::make_unique<PairMode>(bench, 1);
  if (name == "batch") mode = std::make_unique<PairMode>(bench, options.batch);
  if (name == "handover") mode = std::make_unique<HandoverMode>(bench);
  if (name == "fanout") mode = std::make_unique<FanoutMode>(bench);
  if (name == "hold") mode = std::make_unique<HoldMode>(bench);
  if (name == "churn") mode = std::make_unique<ChurnMode>(bench);
  if (name == "idle") mode = std::make_unique<IdleMode>(bench);
  bench.connections = std::make_unique<Connections>(
      *wire, options.port, options.connections + (name == "fanout" ? 1 : 0), options.tls,
      [&](int client, const Reply& reply) { mode->on_reply(client, reply); });

  bool once = name == "hold" || name == "churn" || name == "idle";
  Window window = once ? run_once(bench, *mode, name == "idle") : run_timed(bench, *mode);

  JsonLine line;
  line.text("mode", name);
  line.text("protocol", options.protocol);
  line.number("connections", options.connections);
  line.number("pipeline", options.pipeline);
  line.number("seconds", window.seconds(), 3);
  mode->report(line, window.seconds());
  if (!once) {
    line.number("p50_us", bench.latencies.quantile(0.50));
    line.number("p99_us", bench.latencies.quantile(0.99));
  }
  double server_cpu_s = window.to.server_cpu_s - window.from.server_cpu_s;
  line.number("client_cpu_s", window.to.client_cpu_s - window.from.client_cpu_s, 3);
  line.number("server_cpu_s", server_cpu_s, 3);
  if (mode->pairs() > 0) line.number("server_cpu_us_per_pair", server_cpu_s * 1e6 / double(mode->pairs()), 2);
  line.number("server_rss_kb", double(bench.server.rss_kb()));
  line.number("errors", double(bench.errors));
  line.print();
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  try {
    run(options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "lockbench: %s\n", failure.what());
    return 1;
  }
}
