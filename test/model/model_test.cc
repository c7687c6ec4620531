// The engine against the naive model, by random histories (testing.md, ring "model").
//
// TURNSTILE_HISTORIES sets how many; TURNSTILE_SEED replays one, with its trace on stderr as it goes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "history.h"

namespace turnstile::model {
namespace {

constexpr size_t kLength = 40;
constexpr uint64_t kHistories = 50'000;  // in CI; nightly runs set a million

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// An engine that aborts takes the test with it; its last words are the seed.
char last_words[64];
void say_last_words(int) {
  if (write(2, last_words, std::strlen(last_words)) < 0) _exit(3);
  std::signal(SIGABRT, SIG_DFL);
}

TEST(ModelHistories, EngineAndModelAgreeOnRandomCommands) {
  if (const uint64_t seed = from_environment("TURNSTILE_SEED", 0); seed != 0) {
    const RandomHistory history = make_history(seed, kLength);
    if (!run(history, false, true).mismatch.empty()) FAIL() << report(history);
    return;
  }
  const auto before = std::signal(SIGABRT, say_last_words);
  const uint64_t histories = from_environment("TURNSTILE_HISTORIES", kHistories);
  for (uint64_t seed = 1; seed <= histories; ++seed) {
    std::snprintf(last_words, sizeof last_words, "TURNSTILE_SEED=%llu\n", (unsigned long long)seed);
    const RandomHistory history = make_history(seed, kLength);
    if (!run(history).mismatch.empty()) FAIL() << report(history);
  }
  std::signal(SIGABRT, before);
}

TEST(ModelHistories, LongHistoriesAgreeToo) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const RandomHistory history = make_history(1'000'000'000 + seed, 1000);
    if (!run(history).mismatch.empty()) FAIL() << report(history);
  }
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
                              "refused refusal=busy",
                              "refused refusal=referenced",
                              "refused refusal=queue_full",
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
    EXPECT_NE(first.trace_hash, run(make_history(seed + 100, kLength)).trace_hash);
  }
}

}  // namespace
}  // namespace turnstile::model
