// ./dev sim lives: lives of blobs under seeds.
//   lives [--seed N] [--histories M] [--trace] [--plant NAME] [--twice]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "base/log.h"
#include "base/plant.h"
#include "world.h"

int main(int argc, char** argv) {
  using namespace turnstile;
  uint64_t seed = std::random_device{}(), histories = 1000;
  bool trace = false, twice = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--trace") {
      trace = true;
    } else if (flag == "--twice") {
      twice = true;
    } else if (flag == "--seed") {
      seed = std::strtoull(value, nullptr, 10), ++i;
    } else if (flag == "--histories") {
      histories = std::strtoull(value, nullptr, 10), ++i;
    } else if (flag == "--plant") {
      ++i;
      for (const PlantText& each : kPlants)
        if (each.name == value) the_plant = each.plant;
      if (the_plant == Plant::none) return std::fprintf(stderr, "there is no plant '%s'\n", value), 2;
    } else {
      return std::fprintf(stderr, "lives [--seed N] [--histories M] [--trace] [--plant NAME] [--twice]\n"), 2;
    }
  }
  set_log(LogLevel::off, LogFormat::text);
  std::map<std::string, uint64_t> counts;
  for (uint64_t i = 0; i < histories; ++i) {
    const lives::Played played = lives::play(seed + i, trace);
    if (trace) std::printf("%s", played.trace.c_str());
    if (twice && lives::play(seed + i).hash != played.hash)
      return std::printf("seed %llu: two runs differ\n", (unsigned long long)(seed + i)), 1;
    if (!played.violations.empty()) {
      std::printf("seed %llu, after %llu histories: %s\n", (unsigned long long)(seed + i),
                  (unsigned long long)(i + 1), played.violations.front().c_str());
      return 1;
    }
    for (const auto& [what, often] : played.counts) counts[what] += often;
  }
  for (const auto& [what, often] : counts)
    std::printf("%10llu  %s\n", (unsigned long long)often, what.c_str());
  std::printf("%llu histories from seed %llu: no violation\n", (unsigned long long)histories,
              (unsigned long long)seed);
  return 0;
}
