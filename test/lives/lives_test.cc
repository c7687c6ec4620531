// Lives of blobs under seeds: CI's share (docs/testing.md, ring "lives"). ./dev sim lives plays more.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <random>

#include "base/log.h"
#include "base/plant.h"
#include "world.h"

namespace turnstile {
void PrintTo(Plant plant, std::ostream* out) { *out << name_of(plant); }
}  // namespace turnstile

namespace turnstile::lives {
namespace {

constexpr uint64_t kKnown = 150, kFresh = 100;  // histories

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::map<std::string, uint64_t> play_all(uint64_t first, uint64_t count) {
  set_log(LogLevel::off, LogFormat::text);
  std::map<std::string, uint64_t> counts;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Played played = play(seed);
    if (!played.violations.empty()) {
      ADD_FAILURE() << "seed " << seed << ": " << played.violations.front() << "\n" << play(seed, true).trace;
      break;
    }
    for (const auto& [what, often] : played.counts) counts[what] += often;
  }
  return counts;
}

TEST(Lives, FreshSeedsShowNoViolation) {
  const uint64_t first = from_environment("TURNSTILE_SEED", std::random_device{}());
  const uint64_t count = from_environment("TURNSTILE_HISTORIES", kFresh);
  std::printf("./dev sim lives --seed %llu --histories %llu\n", (unsigned long long)first,
              (unsigned long long)count);
  play_all(first, count);
}

// A generator that no longer reaches something would make the others say nothing about it.
TEST(Lives, RareStatesAreReached) {
  const std::map<std::string, uint64_t> counts = play_all(1, kKnown);
  for (const char* what :
       {"adoptions", "blobs damaged", "commits refused", "crashes", "cuts", "damaged blobs pulled again",
        "histories that left nothing", "nodes released", "places kept", "removals", "server restarts",
        "stores lost", "writes", "stood still before a blob is removed",
        "stood still before a use is written down"})
    EXPECT_TRUE(counts.contains(what)) << what;
}

TEST(Lives, TheSameSeedIsTheSameHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(play(seed).hash, play(seed).hash) << seed;
}

#define TURNSTILE_PLANT(name, what) Plant::name,
class Planted : public testing::TestWithParam<Plant> {};
INSTANTIATE_TEST_SUITE_P(Content, Planted,
                         testing::Values(TURNSTILE_CONTENT_PLANTS(TURNSTILE_PLANT) Plant::none),
                         [](const auto& each) { return std::string(name_of(each.param)); });
#undef TURNSTILE_PLANT

// From here on it does not take long, until somebody changes what a seed means.
uint64_t first_seed(Plant plant) {
  switch (plant) {
    case Plant::second_names_trusted:
    case Plant::leaves_aside:
      return 300;
    case Plant::confirmed_too_early:
      return 1'100;
    case Plant::late_unlink:
      return 1'400;
    case Plant::doubt_ignored:
      return 1'990;
    case Plant::forgotten_count_counts:
      return 3'400;
    case Plant::old_skip_counts:
      return 6'000;
    case Plant::queued_end_of_use:
      return 14'900;
    default:
      return 1;
  }
}

// What nobody finds fails the build.
TEST_P(Planted, IsFound) {
  if (GetParam() == Plant::none) return;
  constexpr uint64_t kMost = 4'000;
  set_log(LogLevel::off, LogFormat::text);
  the_plant = GetParam();
  const uint64_t first = first_seed(GetParam());
  uint64_t played = 0;
  while (played < kMost && play(first + played).violations.empty()) ++played;
  the_plant = Plant::none;
  EXPECT_LT(played, kMost) << "not found";
  std::printf("found after %llu histories\n", (unsigned long long)(played + 1));
}

}  // namespace
}  // namespace turnstile::lives
