// bench: load on a server of yours, through the library.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/standard_streams.h"
#include "cli/bench_modes.h"
#include "cli/json.h"
#include "cli/program.h"

namespace turnstile::cli {
namespace {

struct BenchOptions {
  int connections = 8;
  double seconds = 5;
  std::string mode;  // empty: all
  bool yes = false;
};

// A benchmark is an attack on any server that serves somebody else.
bool is_loopback(std::string_view server) {
  return server.starts_with("unix:") || server.find("://127.") != std::string_view::npos ||
         server.find("://localhost") != std::string_view::npos ||
         server.find("://[::1]") != std::string_view::npos;
}

BenchResult run_mode(const BenchMode& mode, const BenchRun& run) {
  std::vector<BenchResult> results(size_t(run.workers));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < run.workers; ++i) {
      threads.emplace_back([&, i] { results[size_t(i)] = mode.work(run, i); });
    }
  }
  BenchResult all;
  for (BenchResult& result : results) {
    all.count += result.count;
    all.latencies_us.insert(all.latencies_us.end(), result.latencies_us.begin(), result.latencies_us.end());
    if (all.error.empty()) all.error = std::move(result.error);
  }
  std::ranges::sort(all.latencies_us);
  return all;
}

float percentile(const std::vector<float>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, size_t(double(sorted.size()) * share))];
}

void print_result(const Context& context, const BenchOptions& options, Table& table, const BenchMode& mode,
                  const BenchResult& result) {
  const double rate = double(result.count) / options.seconds;
  const float p50 = percentile(result.latencies_us, 0.5), p99 = percentile(result.latencies_us, 0.99);
  if (context.json()) {
    print_json(boost::json::object{{"mode", mode.name},
                                   {"connections", options.connections},
                                   {"seconds", options.seconds},
                                   {"count", result.count},
                                   {"per_second", rate},
                                   {"p50_us", p50},
                                   {"p99_us", p99}});
    return;
  }
  table.add({mode.name, mode.counts, fmt::format("{:.0f}/s", rate), fmt::format("{:.0f}us", p50),
             fmt::format("{:.0f}us", p99)});
}

int bench(const Context& context, const BenchOptions& options) {
  if (!options.yes && !std::ranges::all_of(context.servers, is_loopback)) {
    return report(context.output,
                  "bench would load a server that is not on this machine; if it is yours, add --yes", "usage",
                  kUsage);
  }
  Expected<LockClient> client = context.client();
  if (!client) return context.fail(client.error());
  if (const auto version = client->version(); !version) return context.fail(version.error());
  Table table({"MODE", "COUNTS", "RATE", "P50", "P99"});
  for (const BenchMode& mode : bench_modes()) {
    if (!options.mode.empty() && options.mode != mode.name) continue;
    BenchRun run;
    run.settings = *context.settings(Context::kFewRetries);
    run.resource = fmt::format("bench-{}-{}", getpid(), mode.name);
    run.workers = options.connections;
    run.until = LockClient::Clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(options.seconds));
    const BenchResult result = run_mode(mode, run);
    if (!result.error.empty()) return report(context.output, result.error, "bench", kUnexpected);
    print_result(context, options, table, mode, result);
  }
  if (!context.json()) print_output("{}", table.text());
  return kOk;
}

}  // namespace

void add_bench_command(Command& program, Context& context) {
  auto options = std::make_shared<BenchOptions>();
  Command command = program.command("bench", "Put load on a server of yours, and measure it.",
                                    "  turnstile bench --seconds 2\n"
                                    "  turnstile bench --mode handover --connections 32\n");
  command.option("--connections", options->connections, "how many clients, each with a thread (8)")
      .between(1, 1'000);
  command.option("--seconds", options->seconds, "how long each mode takes (5)").between(0.1, 3'600.0);
  command.option("--mode", options->mode, "only this one (all)")
      .one_of({"pair", "handover", "fanout", "batch"});
  command.flag("--yes", options->yes, "also a server that is not on this machine");
  command.runs(context, options, bench);
}

}  // namespace turnstile::cli
