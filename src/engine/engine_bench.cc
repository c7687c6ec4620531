// What the engine costs by itself, without wires: a pair of lock and unlock, and the slices of what is long.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace turnstile {
namespace {

class NoSink final : public CommitSink {
 public:
  uint64_t commit(Effects&) override { return 0; }
  uint64_t latest() const override { return 0; }
  bool wants_records() const override { return false; }
};

constexpr Time kNow{std::chrono::hours(24)};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

LockCommand lock_of(std::string_view resource, std::string_view node) {
  LockCommand command;
  command.lane = {OperationName("update"), ResourceId(resource)};
  command.who = {NodeId(node), RequestId()};
  return command;
}

void pair(benchmark::State& state) {
  NoSink sink;
  EngineSettings settings;
  settings.retain_released = Duration(0);
  Engine engine(settings, sink, Token::none);
  std::vector<std::string> resources;
  for (int i = 0; i < 1024; ++i) resources.push_back(fmt::format("bench-{:012}", i));
  Effects effects;
  size_t next = 0;
  for (auto _ : state) {
    const LockCommand lock = lock_of(resources[next++ % resources.size()], "client-0007");
    effects.clear();
    UnlockCommand unlock;
    unlock.lane = lock.lane;
    unlock.who = lock.who;
    unlock.token = engine.lock(lock, kNow, effects).token;
    effects.clear();
    benchmark::DoNotOptimize(engine.unlock(unlock, kNow, effects));
  }
}
BENCHMARK(pair);

// A million held locks; each iteration is a whole walk, and the counters tell its longest slice.
void walks_over_a_million(benchmark::State& state) {
  NoSink sink;
  Engine engine(EngineSettings{}, sink, Token::none);
  Effects effects;
  for (int i = 0; i < 1'000'000; ++i) {
    effects.clear();
    engine.lock(lock_of(fmt::format("sha256:{:064x}", i), "client-0007"), kNow, effects);
  }
  double longest_list = 0, longest_release = 0;
  for (auto _ : state) {
    ListCommand command;
    command.state = LaneState::waiting;
    ListWalk list(command);
    for (bool finished = false; !finished;) {
      const auto start = std::chrono::steady_clock::now();
      finished = engine.list_some(list, 2000, kNow);
      longest_list = std::max(longest_list, ms_since(start));
    }
    ReleaseNodeWalk release(NodeId("client-0007"));
    for (bool finished = false; !finished;) {
      const auto start = std::chrono::steady_clock::now();
      finished = engine.release_node_some(release, 2000, kNow, effects, [](Effects&) {});
      longest_release = std::max(longest_release, ms_since(start));
    }
  }
  state.counters["longest_list_slice_ms"] = longest_list;
  state.counters["longest_release_slice_ms"] = longest_release;
}
BENCHMARK(walks_over_a_million)->Unit(benchmark::kMillisecond)->Iterations(3);

void hundred_thousand_references(benchmark::State& state) {
  NoSink sink;
  for (auto _ : state) {
    Engine engine(EngineSettings{}, sink, Token::none);
    Effects effects;
    uint64_t random = 1;
    for (int i = 0; i < 100'000; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      effects.clear();
      engine.add_reference({ResourceId("r"), NodeId(fmt::format("node-{:016x}", random))}, kNow, effects);
    }
  }
}
BENCHMARK(hundred_thousand_references)->Unit(benchmark::kMillisecond)->Iterations(1);

// A hundred thousand wait, and the work fails for good with 4 KiB of error. The counter: the longest step.
void end_of_a_hundred_thousand(benchmark::State& state) {
  NoSink sink;
  const std::string error(4096, 'e');
  double longest = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto engine = std::make_unique<Engine>(EngineSettings{}, sink, Token::none);
    Effects effects;
    for (int i = 0; i <= 100'000; ++i) {
      LockCommand lock = lock_of("r", fmt::format("node-{}", i));
      lock.poll = PollId(i);
      effects.clear();
      engine->lock(lock, kNow, effects);
    }
    UnlockCommand unlock;
    unlock.lane = lock_of("r", "").lane;
    unlock.who.node = NodeId("node-0");
    unlock.success = false;
    unlock.error = error;
    unlock.permanent = true;
    state.ResumeTiming();
    for (bool first = true, unfinished = true; unfinished; first = false) {
      const auto start = std::chrono::steady_clock::now();
      effects.clear();
      first ? void(engine->unlock(unlock, kNow, effects)) : engine->go_on(ResourceId("r"), kNow, effects);
      unfinished = effects.unfinished;
      longest = std::max(longest, ms_since(start));
    }
    state.PauseTiming();
    engine.reset();
    state.ResumeTiming();
  }
  state.counters["longest_step_ms"] = longest;
}
BENCHMARK(end_of_a_hundred_thousand)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace turnstile
