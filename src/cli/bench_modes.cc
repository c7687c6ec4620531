#include "cli/bench_modes.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnstile::cli {
namespace {

using BenchClock = LockClient::Clock;

constexpr const char* kOperation = "turnstile-bench";  // a plain mutex: nothing of it is kept
constexpr size_t kBatch = 100;

LockRequest request_for(const std::string& resource) {
  LockRequest request;
  request.operation = kOperation;
  request.resource = resource;
  request.lease = std::chrono::milliseconds(0);
  return request;
}

class Stopwatch {
 public:
  float microseconds() const {
    return std::chrono::duration<float, std::micro>(BenchClock::now() - began_).count();
  }

 private:
  BenchClock::time_point began_ = BenchClock::now();
};

// Repeats `step`, which returns how many it did, until the time is over or it fails.
template <class Step>
BenchResult repeat(const BenchRun& run, const std::string& node, Step step) {
  BenchResult result;
  ClientSettings settings = run.settings;
  settings.node_id = node;
  Expected<LockClient> client = LockClient::create(std::move(settings));
  while (client && !run.over()) {
    const Stopwatch watch;
    const Expected<uint64_t> done = step(*client);
    if (!done) {
      // The end may have cut the last one off: as a wait, or as a call that had no time left for its answer.
      const bool cut_off = done.error().code == ErrorCode::timed_out || (run.over() && result.count > 0);
      if (!cut_off) result.error = done.error().message;
      break;
    }
    result.latencies_us.push_back(watch.microseconds());
    result.count += *done;
  }
  return result;
}

Expected<uint64_t> lock_and_release(LockClient& client, const LockRequest& request,
                                    BenchClock::time_point until) {
  Expected<LockResult> locked = client.lock(request, until);
  if (!locked) return std::unexpected(locked.error());
  const Expected<Released> released = locked->hold.release(WorkResult::succeeded());
  if (!released) return std::unexpected(released.error());
  return 1;
}

// Each worker on a resource of its own: nobody waits.
BenchResult pair(const BenchRun& run, int worker) {
  const LockRequest request = request_for(fmt::format("{}/{}", run.resource, worker));
  return repeat(run, fmt::format("bench-{}", worker),
                [&](LockClient& client) { return lock_and_release(client, request, run.until); });
}

// All workers on one resource: it goes from hand to hand.
BenchResult handover(const BenchRun& run, int worker) {
  const LockRequest request = request_for(run.resource);
  return repeat(run, fmt::format("bench-{}", worker),
                [&](LockClient& client) { return lock_and_release(client, request, run.until); });
}

// The first worker locks and releases; the others subscribe to its lane and count what they are told.
BenchResult fanout(const BenchRun& run, int worker) {
  const std::string node = fmt::format("bench-{}", worker);
  if (worker == 0) {
    BenchResult result = pair(run, 0);
    result.count = 0;  // what counts is delivered
    return result;
  }
  BenchResult result;
  std::atomic<uint64_t> told{0};
  ClientSettings settings = run.settings;
  settings.node_id = node;
  Expected<LockClient> client = LockClient::create(std::move(settings));
  if (!client) return result;
  SubscribeRequest request;
  request.operation = kOperation;
  request.resource = run.resource + "/0";
  {
    const Expected<Subscription> subscription = client->subscribe(request, [&](const Event&) { ++told; });
    std::this_thread::sleep_until(run.until);
  }
  result.count = told;
  return result;
}

// A hundred locks in one round trip, and their release in another.
BenchResult batch(const BenchRun& run, int worker) {
  std::vector<LockRequest> requests;
  for (size_t i = 0; i < kBatch; ++i) {
    requests.push_back(request_for(fmt::format("{}/{}/{}", run.resource, worker, i)));
  }
  return repeat(run, fmt::format("bench-{}", worker), [&](LockClient& client) -> Expected<uint64_t> {
    auto locked = client.try_lock_all(requests);
    if (!locked) return std::unexpected(locked.error());
    std::vector<Hold> holds;
    for (Expected<LockResult>& one : *locked) {
      if (one && one->acquired()) holds.push_back(std::move(one->hold));
    }
    const auto released = client.release_all(holds, WorkResult::succeeded());
    if (!released) return std::unexpected(released.error());
    return released->size();
  });
}

}  // namespace

const std::vector<BenchMode>& bench_modes() {
  static const std::vector<BenchMode> modes = {{"pair", "lock and unlock, alone", pair},
                                               {"handover", "lock handed on, contended", handover},
                                               {"fanout", "events delivered", fanout},
                                               {"batch", "lock and unlock, 100 a call", batch}};
  return modes;
}

}  // namespace turnstile::cli
