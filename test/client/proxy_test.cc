// Every exchange of a lock and its unlock, with every kind of misbehaviour of the network at every byte of
// it: whatever happens, a request has one effect.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "faulty_proxy.h"
#include "server_process.h"

namespace turnstile {
namespace {

using namespace std::chrono_literals;

// One kind of fault at every byte of one way of one of the two exchanges: a thread with a proxy and a client
// of its own.
struct Scan {
  FaultKind kind;
  FaultWay way;
  bool at_unlock;
  std::string name;
  size_t faults = 0;                // how many times it happened
  std::vector<std::string> locked;  // one resource each
};

ClientSettings through(const FaultyProxy& proxy, const std::string& node) {
  return {.servers = {"http://127.0.0.1:" + std::to_string(proxy.port())},
          .node_id = node,
          .request_timeout = 30ms,
          .max_retries = 100,
          .retry_interval = 1ms};
}

// Locks and unlocks `resource`, with the fault at byte `at` of the lock's exchange or of the unlock's.
// Returns whether it happened.
bool lock_and_unlock(LockClient& client, LockClient& direct, FaultyProxy& proxy, Scan& scan, size_t at) {
  const Fault fault{.kind = scan.kind, .way = scan.way, .at = at, .delay = 50ms};
  const std::string resource = scan.name + "/" + std::to_string(at);
  scan.locked.push_back(resource);
  if (!scan.at_unlock) proxy.arm(fault);
  Expected<LockResult> result = client.try_lock({.operation = "own", .resource = resource, .lease = 60s});
  EXPECT_TRUE(result && result->acquired()) << resource << (result ? "" : result.error().message);
  if (!result || !result->acquired()) return false;
  // A request that was delayed arrives while the lock is held, and finds itself done already (S2).
  bool happened = proxy.disarm();
  proxy.await_late_bytes();
  const Expected<LaneStatus> seen = direct.status("own", resource);
  EXPECT_TRUE(seen && seen->holder) << resource;
  if (seen && seen->holder) {
    EXPECT_EQ(seen->holder->token, result->hold.token()) << resource;
    EXPECT_EQ(seen->queue_length, 0u) << resource;
  }
  if (scan.at_unlock) proxy.arm(fault);
  const Expected<Released> released = result->hold.release(WorkResult::succeeded());
  EXPECT_TRUE(released) << resource << ": " << (released ? "" : released.error().message);
  if (scan.at_unlock) happened = proxy.disarm();
  proxy.await_late_bytes();
  EXPECT_EQ(direct.status("own", resource)->state, "idle") << resource;
  scan.faults += happened;
  return happened;
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return size_t(std::distance(begin(all), end(all)));
}

void run_scan(const ServerProcess& server, Scan& scan) {
  FaultyProxy proxy(server.host(), server.port());
  LockClient client = std::move(*LockClient::create(through(proxy, scan.name)));
  LockClient direct = server.client("observer");
  for (size_t at = 0; lock_and_unlock(client, direct, proxy, scan, at); ++at) {
  }
}

TEST(Proxy, AFaultAtAnyByteOfAnExchangeCostsNoSecondEffectAndNoLostOne) {
  ServerProcess server;
  std::mutex mutex;
  std::map<std::string, std::map<std::string, int>> events;  // resource -> event -> how many
  LockClient observer = server.client("observer");
  const Expected<Subscription> subscription = observer.subscribe({}, [&](const Event& event) {
    const std::lock_guard lock(mutex);
    ++events[event.resource][event.event];
  });
  ASSERT_TRUE(subscription);

  // subscribe() returns before the stream is open, and nobody is told of what was granted before: so one lock
  // after the other is taken, until one is told of.
  LockClient direct = server.client("observer");
  const auto is_told_of = [&](const std::string& name) {
    const auto give_up = std::chrono::steady_clock::now() + 60s;
    for (int i = 0; std::chrono::steady_clock::now() < give_up; ++i) {
      const std::string resource = name + " " + std::to_string(i);
      EXPECT_TRUE(direct.try_lock({.operation = "own", .resource = resource})->acquired());
      const auto next = std::chrono::steady_clock::now() + 1s;
      for (; std::chrono::steady_clock::now() < next; std::this_thread::sleep_for(1ms)) {
        const std::lock_guard lock(mutex);
        if (events.contains(resource)) return true;
      }
    }
    return false;
  };
  ASSERT_TRUE(is_told_of("first"));
  const size_t descriptors = open_descriptors();

  std::vector<Scan> scans;
  for (const auto& [kind, name] : {std::pair(FaultKind::cut, "cut "),
                                   {FaultKind::drop, "drop "},
                                   {FaultKind::delay, "delay "},
                                   {FaultKind::repeat, "repeat "}}) {
    for (const bool at_unlock : {false, true}) {
      const std::string exchange = at_unlock ? "unlock" : "lock";
      scans.push_back({kind, FaultWay::request, at_unlock, name + exchange + "'s request", 0, {}});
      if (kind == FaultKind::repeat) continue;
      scans.push_back({kind, FaultWay::answer, at_unlock, name + exchange + "'s answer", 0, {}});
    }
  }
  {
    std::vector<std::jthread> threads;
    for (Scan& scan : scans) threads.emplace_back([&] { run_scan(server, scan); });
  }
  EXPECT_TRUE(eventually([&] { return open_descriptors() == descriptors; }))
      << "a client that has gone leaves none behind: " << open_descriptors() << " instead of " << descriptors;
  ASSERT_TRUE(is_told_of("last"));  // and so of everything before

  for (const Scan& scan : scans) {
    std::printf("%-24s %3zu faults\n", scan.name.c_str(), scan.faults);
    EXPECT_GT(scan.faults, 150u) << scan.name << ": a request and an answer have hundreds of bytes";
    for (const std::string& resource : scan.locked) {
      EXPECT_EQ(events[resource]["granted"], 1) << resource;
      EXPECT_EQ(events[resource]["completed"], 1) << resource;
      EXPECT_EQ(events[resource].size(), 2u) << resource << ": no other event";
    }
  }
}

}  // namespace
}  // namespace turnstile
