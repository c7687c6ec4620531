// The whole server, and several servers on an etcd that misbehaves, each history under one seed: CI's share
// (docs/testing.md, rings "simulation"). ./dev sim plays more.
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

// One of the two kinds of histories.
struct Ring {
  Plan (*make)(uint64_t seed);
  const char* command;           // that plays them
  uint64_t known, fresh, twice;  // histories
  LogLevel log;
};
constexpr Ring kSingle{make_plan, "./dev sim", 1000, 300, 100, LogLevel::error};
constexpr Ring kReplicated{make_replicated_plan, "./dev sim replicated", 100, 40, 10, LogLevel::off};

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Plays them, and adds up what was reached.
Rare play_all(const Ring& ring, uint64_t first, uint64_t count) {
  set_log(ring.log, LogFormat::text);
  Rare rare;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Plan plan = ring.make(seed);
    const Outcome outcome = play(plan);
    if (!outcome.violations.empty()) {
      ADD_FAILURE() << report(plan);
      break;
    }
    for (const auto& [what, often] : outcome.rare) rare[what] += often;
  }
  return rare;
}

void play_fresh_ones(const Ring& ring) {
  const uint64_t first = from_environment("TURNSTILE_SEED", std::random_device{}());
  const uint64_t count = from_environment("TURNSTILE_HISTORIES", ring.fresh);
  std::printf("seeds %llu to %llu: %s --seed %llu --histories %llu\n", (unsigned long long)first,
              (unsigned long long)(first + count - 1), ring.command, (unsigned long long)first,
              (unsigned long long)count);
  play_all(ring, first, count);
}

// A generator that no longer reaches something would make the others say nothing about it.
void expect_reached(const Ring& ring, std::initializer_list<const char*> wanted) {
  const Rare rare = play_all(ring, 1, ring.known);
  for (const auto& [what, often] : rare) std::printf("%8llu  %s\n", (unsigned long long)often, what.c_str());
  for (const char* what : wanted) EXPECT_TRUE(rare.contains(what)) << what;
}

void play_each_twice(const Ring& ring) {
  set_log(ring.log, LogFormat::text);
  for (uint64_t seed = 1; seed <= ring.twice; ++seed) {
    const Plan plan = ring.make(seed);
    const Outcome first = play(plan, true), second = play(plan, true);
    ASSERT_EQ(first.trace, second.trace) << "seed " << seed;
    ASSERT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_NE(first.hash, play(ring.make(seed + ring.twice)).hash) << "seed " << seed;
  }
}

TEST(Simulation, FreshSeedsShowNoViolation) { play_fresh_ones(kSingle); }
TEST(ReplicatedSimulation, FreshSeedsShowNoViolation) { play_fresh_ones(kReplicated); }

TEST(Simulation, RareStatesAreReached) {
  expect_reached(
      kSingle, {"answers that waited for the disk", "crashes while the journal was writing",
                "library: acquired", "library: skipped", "new lives in one process", "resets seen by readers",
                "results told to who skips", "slow readers cut off", "snapshots", "starts with waiters",
                "streams that came back", "streams that were full", "successes forgotten", "torn tails cut",
                "turns that could not write all that was ready", "writes of unknown outcome"});
}

TEST(ReplicatedSimulation, RareStatesAreReached) {
  expect_reached(kReplicated, {"calls of etcd that went wrong", "crashes while the journal was writing",
                               "etcd restored from a backup", "guards that refused a write",
                               "keys of leaders deleted by hand", "leases that ended too early",
                               "library: acquired", "library: skipped", "planned hand-overs",
                               "renewals of leases that were gone", "snapshots in etcd", "stale reads",
                               "standbys that began anew", "strikes between a write and its answer",
                               "take-overs by who has applied the log", "take-overs with waiters", "terms",
                               "writes carried out late", "writes done by an etcd that said it was full"});
}

TEST(Simulation, TheSameSeedIsSeenTheSame) { play_each_twice(kSingle); }
TEST(ReplicatedSimulation, TheSameSeedIsSeenTheSame) { play_each_twice(kReplicated); }

void expect_found(const Ring& ring, Plant plant) {
  const auto found = histories_until_found(plant, ring.make);
  ASSERT_TRUE(found) << "no history of " << kMostHistories
                     << " shows it: the simulation has gone blind to it";
  std::printf("found after %llu histories\n", (unsigned long long)*found);
}

class PlantedBugs : public ::testing::TestWithParam<Plant> {};
class ReplicaPlants : public PlantedBugs {};

TEST_P(PlantedBugs, AreFoundBySimulation) { expect_found(kSingle, GetParam()); }
TEST_P(ReplicaPlants, AreFoundBySimulation) { expect_found(kReplicated, GetParam()); }

constexpr auto name_of_test = [](const auto& test) { return std::string(name_of(test.param)); };
INSTANTIATE_TEST_SUITE_P(All, PlantedBugs, ::testing::ValuesIn(kSimulationPlants), name_of_test);
INSTANTIATE_TEST_SUITE_P(All, ReplicaPlants, ::testing::ValuesIn(kReplicaPlants), name_of_test);

}  // namespace
}  // namespace turnstile::sim
