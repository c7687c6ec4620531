// What an event costs: for those who make it when nobody listens, when others listen, and when a thousand
// listen.
#include <benchmark/benchmark.h>

#include "events/router.h"
#include "events/testing.h"

namespace turnstile {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string format(uint64_t id, const Event& event) {
  return "id: " + std::to_string(id) + "\ndata: {\"resource_id\":\"" + std::string(event.lane.resource.text) +
         "\",\"node_id\":\"" + std::string(event.who.node.text) + "\"}\n\n";
}

struct Fixture {
  EventLog log{1};
  size_t delivered = 0;
  Router router{log, format, [this](unsigned, std::vector<Delivery>&& all) { delivered += all.size(); }};
  uint64_t sequence = 0;

  void step(const Event& event) { router.answered(log.append({&event, 1}, ++sequence)); }
};

void AppendAndRelease(benchmark::State& state) {
  Fixture fixture;
  const Event event = events_testing::event_on(kDigest);
  for (auto _ : state) fixture.step(event);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(AppendAndRelease);

void AppendAndReleaseWithSubscribersOfOtherLanes(benchmark::State& state) {
  Fixture fixture;
  for (uint64_t i = 0; i < uint64_t(state.range(0)); ++i) {
    const std::string other = kDigest + std::to_string(i);
    fixture.router.subscribe(unsigned(i % 2), SubscriberId(i),
                             Filter::lane(events_testing::lane("pull", other)));
  }
  const Event event = events_testing::event_on(kDigest);
  for (auto _ : state) fixture.step(event);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(AppendAndReleaseWithSubscribersOfOtherLanes)->Arg(1)->Arg(1000);

void FanOut(benchmark::State& state, const Filter& filter) {
  Fixture fixture;
  for (uint64_t i = 0; i < uint64_t(state.range(0)); ++i) {
    fixture.router.subscribe(unsigned(i % 2), SubscriberId(i), filter);
  }
  const Event event = events_testing::event_on(kDigest);
  for (auto _ : state) fixture.step(event);
  state.SetItemsProcessed(int64_t(fixture.delivered));
}
BENCHMARK_CAPTURE(FanOut, lane, Filter::lane(events_testing::lane("pull", kDigest)))->Arg(1)->Arg(1000);
BENCHMARK_CAPTURE(FanOut, everything, Filter::everything())->Arg(1000);

// A reconnect that finds one event of its lane at the far end of a full log.
void ResumeThroughAFullLog(benchmark::State& state) {
  Fixture fixture;
  const Event event = events_testing::event_on(kDigest);
  for (int i = 0; i < 32'768; ++i) fixture.step(event);
  const Filter filter = Filter::lane(events_testing::lane("pull", "other"));
  uint64_t subscriber = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(fixture.router.resume(0, SubscriberId(++subscriber), filter, 1));
    fixture.router.unsubscribe(SubscriberId(subscriber));
  }
}
BENCHMARK(ResumeThroughAFullLog);

}  // namespace
}  // namespace turnstile
