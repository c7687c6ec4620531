// Plays histories of the whole server, one seed each: ./dev sim --seed N --histories M.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <string>

#include "base/log.h"
#include "base/plant.h"
#include "world.h"

using namespace turnstile;

namespace {

struct Options {
  uint64_t seed = 0, histories = 1000;
  bool twice = false, trace = false, replicated = false;
};

int usage() {
  std::fputs(
      "simulation [--seed N] [--histories M] [--twice] [--trace] [--replicated] [--plant NAME]\n"
      "  --seed N       the first history's; without it, one that nobody has seen (it is printed)\n"
      "  --histories M  how many, each with the next seed (1000)\n"
      "  --twice        plays each twice, and compares the hashes of all that was seen\n"
      "  --trace        prints what was seen\n"
      "  --replicated   several servers on one etcd\n"
      "  --plant NAME   with one of the deliberate defects of src/base/plant.h\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.seed = std::random_device{}();
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help") return usage(), 0;
    if (name == "--twice") {
      options.twice = true;
      continue;
    }
    if (name == "--trace") {
      options.trace = true;
      continue;
    }
    if (name == "--replicated") {
      options.replicated = true;
      continue;
    }
    if (i + 1 >= argc) return usage();
    const std::string value = argv[++i];
    if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--histories") {
      options.histories = std::stoull(value);
    } else if (name == "--plant") {
      for (const PlantText& each : kPlants)
        if (each.name == value) the_plant = each.plant;
      if (the_plant == Plant::none) return usage();
    } else {
      return usage();
    }
  }
  set_log(options.replicated ? LogLevel::off : LogLevel::error, LogFormat::text);
  std::printf("seeds %llu to %llu\n", (unsigned long long)options.seed,
              (unsigned long long)(options.seed + options.histories - 1));
  const auto start = std::chrono::steady_clock::now();
  sim::Rare rare;
  uint64_t calls = 0, events = 0, crashes = 0;
  for (uint64_t seed = options.seed; seed < options.seed + options.histories; ++seed) {
    const sim::Plan plan = options.replicated ? sim::make_replicated_plan(seed) : sim::make_plan(seed);
    const sim::Outcome outcome = sim::play(plan, options.trace);
    if (options.trace) std::fputs(outcome.trace.c_str(), stdout);
    if (!outcome.violations.empty()) {
      std::fputs(sim::report(plan).c_str(), stdout);
      for (const std::string& violation : outcome.violations)
        std::printf("VIOLATION: %s\n", violation.c_str());
      return 1;
    }
    if (options.twice && sim::play(plan).hash != outcome.hash) {
      std::printf("seed %llu: played twice, seen differently\n", (unsigned long long)seed);
      return 1;
    }
    for (const auto& [what, count] : outcome.rare) rare[what] += count;
    calls += outcome.calls;
    events += outcome.events;
    crashes += outcome.crashes;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%llu histories, no violation, %.1f s: %llu calls, %llu events, %llu crashes\n",
              (unsigned long long)options.histories, seconds, (unsigned long long)calls,
              (unsigned long long)events, (unsigned long long)crashes);
  for (const auto& [what, count] : rare) std::printf("%10llu  %s\n", (unsigned long long)count, what.c_str());
  return 0;
}
