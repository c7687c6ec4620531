// The engine against the naive model, by random histories (docs/testing.md, ring "model").
//
// TURNSTILE_HISTORIES: how many with fresh seeds, of all parts. TURNSTILE_BASE: where these begin (by chance;
// printed).
// TURNSTILE_SEED and TURNSTILE_LENGTH: this one alone, with its trace on stderr as it goes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "history.h"

namespace turnstile::model {
namespace {

constexpr size_t kLength = 40;
// In CI; a nightly run has a million fresh ones. In parts, so that a busy machine has no test that takes
// minutes.
constexpr uint64_t kFixed = 10'000, kFresh = 40'000;
constexpr uint64_t kParts = 4;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// An engine that aborts takes the test with it; its last words are the seed.
char last_words[96];
void say_last_words(int) {
  if (write(2, last_words, std::strlen(last_words)) < 0) _exit(3);
  std::signal(SIGABRT, SIG_DFL);
}

// Adds up what they have reached. Ends with the first that does not agree.
void run_histories(uint64_t first, uint64_t count, size_t length, RareCounts& rare) {
  const auto before = std::signal(SIGABRT, say_last_words);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RandomHistory history = make_history(seed, length);
    std::snprintf(last_words, sizeof last_words, "%s\n", how_to_repeat(history).c_str());
    const Outcome outcome = run(history);
    if (!outcome.mismatch.empty()) FAIL() << report(history);
    for (size_t i = 0; i < rare.size(); ++i) rare[i] += outcome.rare[i];
  }
  std::signal(SIGABRT, before);
}

// Whether one history was asked for; if so, it has been run.
bool ran_the_one_asked_for() {
  const uint64_t seed = from_environment("TURNSTILE_SEED", 0);
  if (seed == 0) return false;
  const RandomHistory history = make_history(seed, from_environment("TURNSTILE_LENGTH", kLength));
  if (!run(history, false, true).mismatch.empty()) ADD_FAILURE() << report(history);
  return true;
}

// 62 bits, so that whatever is added to it stays above the fixed ones and does not overflow.
uint64_t fresh_seed() {
  std::random_device device;
  return (uint64_t(device()) << 30) ^ device();
}

TEST(ModelHistories, EngineAndModelAgreeOnKnownSeeds) {
  if (ran_the_one_asked_for()) return;
  RareCounts rare{};
  run_histories(1, std::min(kFixed, from_environment("TURNSTILE_HISTORIES", kFixed)), kLength, rare);
}

class FreshSeeds : public testing::TestWithParam<uint64_t> {};

TEST_P(FreshSeeds, EngineAndModelAgreeAndReachRareStates) {
  if (ran_the_one_asked_for()) return;
  const uint64_t count = from_environment("TURNSTILE_HISTORIES", kFresh) / kParts;
  const uint64_t base = from_environment("TURNSTILE_BASE", fresh_seed());
  fmt::print("{} histories, TURNSTILE_BASE={}\n", count, base);
  std::fflush(stdout);
  RareCounts rare{};
  ASSERT_NO_FATAL_FAILURE(run_histories(base + GetParam() * count, count, kLength, rare))
      << "TURNSTILE_BASE=" << base;
  for (size_t i = 0; i < rare.size(); ++i) {
    fmt::print("{:>9} {}: {}\n", rare[i], kRareStates[i].name, kRareStates[i].what);
    // The rarest comes once in a few hundred histories: in so many it is there.
    const bool enough = rare[i] > 0 || count < kFresh / kParts;
    EXPECT_TRUE(enough) << kRareStates[i].name << " never, TURNSTILE_BASE=" << base;
  }
}
INSTANTIATE_TEST_SUITE_P(Part, FreshSeeds, testing::Range<uint64_t>(0, kParts));

TEST(ModelHistories, LongHistoriesAgreeToo) {
  if (ran_the_one_asked_for()) return;
  RareCounts rare{};
  run_histories(1'000'000'001, 50, 1000, rare);
}

// A generator that no longer reaches a rule would make the comparison say nothing about it.
TEST(ModelHistories, RandomCommandsReachEveryOutcome) {
  std::string said;
  for (uint64_t seed = 1; seed <= 2000; ++seed) said += run(make_history(seed, kLength), true).trace;
  for (const char* outcome : {"acquired token",
                              "previous_error=",
                              "queued position",
                              "holder={",
                              "skipped\n",
                              "skipped references=",
                              "skipped done_by=",
                              "result=",
                              "released keep=",
                              "refused refusal=busy",
                              "refused refusal=referenced",
                              "refused refusal=queue_full",
                              "refused refusal=too_many_waiters",
                              "refusal=too_many_references",
                              "failed refusal=failed",
                              "released next=",
                              "released already",
                              "refusal=not_held",
                              "refusal=not_holder",
                              "refusal=stale_token",
                              "refusal=references_off",
                              "renewed lease=",
                              "bonded",
                              "progress=",
                              "completed success",
                              "completed failure",
                              "reason=lease",
                              "reason=max_hold",
                              "reason=stall",
                              "reason=unclaimed",
                              "reason=bond",
                              "reason=cancelled",
                              "event granted",
                              "event completed",
                              "event failed",
                              "event expired",
                              "event broken",
                              "event cancelled",
                              "event refused",
                              "permanent",
                              ": acquired",
                              ": skipped",
                              ": refused",
                              ": failed",
                              ": cancelled",
                              "count=2",
                              "attempt=3",
                              "position=3"})
    EXPECT_NE(said.find(outcome), std::string::npos) << outcome;
}

TEST(ModelHistories, TheSameSeedGivesTheSameTrace) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Outcome first = run(make_history(seed, kLength), true),
                  second = run(make_history(seed, kLength), true);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_NE(first.trace_hash, run(make_history(seed + 100, kLength), true).trace_hash);
  }
}

}  // namespace
}  // namespace turnstile::model
