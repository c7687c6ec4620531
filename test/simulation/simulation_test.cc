// The whole server under one seed: CI's share (docs/testing.md, ring "simulation"). ./dev sim plays more.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <random>

#include "base/log.h"
#include "plants.h"
#include "world.h"

namespace turnstile {
void PrintTo(Plant plant, std::ostream* out) { *out << name_of(plant); }
}  // namespace turnstile

namespace turnstile::sim {
namespace {

constexpr uint64_t kKnown = 1000, kFresh = 300;  // histories

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Plays them, and adds up what was reached.
Rare play_all(uint64_t first, uint64_t count) {
  set_log(LogLevel::error, LogFormat::text);
  Rare rare;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Plan plan = make_plan(seed);
    const Outcome outcome = play(plan);
    if (!outcome.violations.empty()) {
      ADD_FAILURE() << report(plan);
      break;
    }
    for (const auto& [what, often] : outcome.rare) rare[what] += often;
  }
  return rare;
}

TEST(Simulation, FreshSeedsShowNoViolation) {
  const uint64_t first = from_environment("TURNSTILE_SEED", std::random_device{}());
  const uint64_t count = from_environment("TURNSTILE_HISTORIES", kFresh);
  std::printf("seeds %llu to %llu: ./dev sim --seed %llu --histories %llu\n", (unsigned long long)first,
              (unsigned long long)(first + count - 1), (unsigned long long)first, (unsigned long long)count);
  play_all(first, count);
}

// A generator that no longer reaches something would make the others say nothing about it.
TEST(Simulation, RareStatesAreReached) {
  const Rare rare = play_all(1, kKnown);
  for (const auto& [what, often] : rare) std::printf("%8llu  %s\n", (unsigned long long)often, what.c_str());
  for (const char* what :
       {"answers that waited for the disk", "crashes while the journal was writing", "library: acquired",
        "library: skipped", "new lives in one process", "resets seen by readers", "results told to who skips",
        "slow readers cut off", "snapshots", "starts with waiters", "streams that came back",
        "streams that were full", "successes forgotten", "torn tails cut",
        "turns that could not write all that was ready", "writes of unknown outcome"})
    EXPECT_TRUE(rare.contains(what)) << what;
}

TEST(Simulation, TheSameSeedIsSeenTheSame) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Plan plan = make_plan(seed);
    const Outcome first = play(plan, true), second = play(plan, true);
    ASSERT_EQ(first.trace, second.trace) << "seed " << seed;
    ASSERT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_NE(first.hash, play(make_plan(seed + 100)).hash) << "seed " << seed;
  }
}

class PlantedBugs : public ::testing::TestWithParam<Plant> {};

TEST_P(PlantedBugs, AreFoundBySimulation) {
  const auto found = histories_until_found(GetParam());
  ASSERT_TRUE(found) << "no history of " << kMostHistories
                     << " shows it: the simulation has gone blind to it";
  std::printf("found after %llu histories\n", (unsigned long long)*found);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBugs, ::testing::ValuesIn(kSimulationPlants),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace turnstile::sim
