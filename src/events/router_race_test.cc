// Threads append, answer out of order, subscribe, leave and come back, all at once; afterwards every stream
// must have seen exactly its events. Meant for ThreadSanitizer as much as for its own assertions.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <random>
#include <thread>

#include "events/router.h"
#include "events/testing.h"

namespace turnstile {
namespace {

constexpr unsigned kLanes = 4, kMakers = 3, kWatchers = 3, kLoops = 2;
constexpr int kMostSteps = 10'000;   // of one maker
constexpr int kRounds = 100;         // of one watcher
constexpr size_t kMostStaying = 40;  // streams of one watcher that stay to the end
constexpr EventLogSettings kLargeEnough{.max_events = 200'000, .max_bytes = 64 << 20};

std::string resource(size_t lane) { return "r" + std::to_string(lane); }

// A server in miniature: commits under one lock, answers a little later in a different order.
class Server {
 public:
  explicit Server(EventLogSettings settings) : log_(1, settings) {}

  StepId commit(std::mt19937& random) {
    const Locked lock(commit_);
    std::vector<Event> events;
    for (size_t i = random() % 3 + 1; i > 0; --i) {
      lanes_.push_back(random() % kLanes);
      names_.push_back(resource(lanes_.back()));
    }
    for (size_t i = events_made_; i < lanes_.size(); ++i)
      events.push_back(events_testing::event_on(names_[i]));
    events_made_ = lanes_.size();
    return log_.append(events, ++sequence_);
  }
  // Subscribing while nothing can be committed, as it is under the resource's mutex.
  Subscribed subscribe(unsigned loop, SubscriberId id, size_t lane) {
    const Locked lock(commit_);
    Subscribed result = router_.subscribe(loop, id, filter(lane));
    EXPECT_EQ(result.position, lanes_.size());
    return result;
  }
  static Filter filter(size_t lane) {
    if (lane == kLanes) return Filter::everything();
    const std::string name = resource(lane);
    return Filter::lane(events_testing::lane("pull", name));
  }
  // Ids of the lane's events in (after, up_to].
  std::vector<uint64_t> expected(size_t lane, uint64_t after, uint64_t up_to) {
    const Locked lock(commit_);
    std::vector<uint64_t> ids;
    for (uint64_t id = after + 1; id <= std::min<uint64_t>(up_to, lanes_.size()); ++id) {
      if (lane == kLanes || lanes_[id - 1] == lane) ids.push_back(id);
    }
    return ids;
  }

  events_testing::Inbox inbox_;
  EventLog log_;
  Router router_{log_, events_testing::format_id, inbox_.deliver()};
  std::atomic<uint64_t> next_subscriber_{1};
  std::atomic<unsigned> watchers_{0};  // still at work

 private:
  Mutex commit_;
  std::vector<size_t> lanes_ TS_GUARDED_BY(commit_);  // of the event with id index + 1
  std::deque<std::string> names_ TS_GUARDED_BY(commit_);
  size_t events_made_ TS_GUARDED_BY(commit_) = 0;
  uint64_t sequence_ TS_GUARDED_BY(commit_) = 0;
};

void make_events(Server& server, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<StepId> unanswered;
  for (int step = 0; step < kMostSteps && server.watchers_ > 0; ++step) {
    std::this_thread::yield();
    unanswered.push_back(server.commit(random));
    if (random() % 3 != 0) continue;
    std::shuffle(unanswered.begin(), unanswered.end(), random);
    const size_t some = random() % (unanswered.size() + 1);
    for (size_t i = 0; i < some; ++i) {
      server.router_.answered(unanswered.back());
      unanswered.pop_back();
    }
  }
  server.router_.answered(unanswered);
}

// One connection of a stream: where it began, what it was given at once, what was delivered.
struct Connection {
  SubscriberId id{};
  unsigned loop = 0;
  size_t lane = 0;
  uint64_t after = 0;
  std::vector<uint64_t> backlog;
};

Connection connect(Server& server, std::mt19937& random, size_t lane, std::optional<uint64_t> resume_after,
                   bool may_lose) {
  Connection connection{SubscriberId(server.next_subscriber_++), unsigned(random() % kLoops), lane, 0, {}};
  if (!resume_after) {
    connection.after = server.subscribe(connection.loop, connection.id, lane).position;
    return connection;
  }
  uint64_t position = connection.after = *resume_after;
  for (;;) {
    const Subscribed resumed =
        server.router_.resume(connection.loop, connection.id, Server::filter(lane), position, {.events = 50});
    if (resumed.reset_at != 0) {
      EXPECT_TRUE(may_lose);
      connection.after = resumed.reset_at + 1;
      connection.backlog.clear();
    }
    for (const uint64_t id : events_testing::ids_of(resumed.backlog)) connection.backlog.push_back(id);
    if (resumed.live) return connection;
    position = resumed.position;
  }
}

// What the connection saw must be its lane's events, all of them, up to the last it saw; gaps only before a
// reset. Returns the last id it knows of.
uint64_t check(Server& server, const Connection& connection, uint64_t up_to, bool may_lose) {
  std::vector<Delivery> seen;
  for (const uint64_t id : connection.backlog)
    seen.push_back({connection.id, id, std::make_shared<std::string>()});
  for (Delivery& each : server.inbox_.of(connection.loop, connection.id)) seen.push_back(std::move(each));
  uint64_t last = connection.after;
  std::vector<uint64_t> run;
  const auto check_run = [&](uint64_t from, uint64_t to) {
    EXPECT_EQ(run, server.expected(connection.lane, from, to));
    run.clear();
  };
  uint64_t run_start = connection.after;
  for (const Delivery& each : seen) {
    EXPECT_GT(each.id, last);
    if (each.bytes == nullptr) {
      EXPECT_TRUE(may_lose);
      check_run(run_start, last);
      run_start = each.id;
    } else {
      run.push_back(each.id);
    }
    last = each.id;
  }
  check_run(run_start, up_to == UINT64_MAX ? up_to : last);
  return last;
}

void pause(size_t turns) {
  while (turns-- > 0) std::this_thread::yield();
}

void watch(Server& server, unsigned seed, bool may_lose, std::vector<Connection>& staying) {
  std::mt19937 random(seed);
  for (int round = 0; round < kRounds; ++round) {
    const size_t lane = random() % (kLanes + 1);
    Connection connection = connect(server, random, lane, std::nullopt, may_lose);
    for (int reconnect = 0; reconnect < 3; ++reconnect) {
      pause(20);
      if (random() % 3 == 0) break;
      server.router_.unsubscribe(connection.id);
      const uint64_t last = check(server, connection, 0, may_lose);
      pause(random() % 60);
      connection = connect(server, random, lane, last, may_lose);
    }
    if (staying.size() < kMostStaying && random() % 4 == 0) {
      staying.push_back(connection);
    } else {
      server.router_.unsubscribe(connection.id);
      check(server, connection, 0, may_lose);
    }
  }
  --server.watchers_;
}

void run(EventLogSettings settings, bool may_lose) {
  Server server(settings);
  server.watchers_ = kWatchers;
  std::vector<std::vector<Connection>> staying(kWatchers);
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < kMakers; ++i) threads.emplace_back([&, i] { make_events(server, i + 1); });
    for (unsigned i = 0; i < kWatchers; ++i) {
      threads.emplace_back([&, i] { watch(server, i + 100, may_lose, staying[i]); });
    }
  }
  EXPECT_EQ(server.log_.open_steps(), 0u);
  for (const auto& connections : staying) {
    for (const Connection& each : connections) check(server, each, UINT64_MAX, may_lose);
  }
}

TEST(RouterRace, S28_S30_EverySubscriberSeesItsEventsOnceInOrderWithoutAGap) { run(kLargeEnough, false); }

TEST(RouterRace, S28_WithARingMuchTooSmallEveryGapIsAnnouncedByAReset) { run({.max_events = 16}, true); }

// Without other listeners each coming and going switches the log's announcements on and off.
TEST(RouterRace, ComingAndGoingOfTheOnlySubscriberLosesNothing) {
  EventLog log(1, kLargeEnough);
  events_testing::Inbox inbox;
  Router router(log, events_testing::format_id, inbox.deliver());
  std::atomic<bool> done = false;
  std::jthread maker([&] {
    const Event event = events_testing::event_on("r");
    for (uint64_t step = 1; step <= 100'000 && !done; ++step) router.answered(log.append({&event, 1}, step));
  });
  std::vector<uint64_t> seen;
  uint64_t last = 0;
  for (uint64_t round = 1; round <= 5000; ++round) {
    Subscribed resumed;
    do {
      resumed = router.resume(0, SubscriberId(round), Filter::everything(), last);
      for (const uint64_t id : events_testing::ids_of(resumed.backlog)) seen.push_back(id);
      ASSERT_EQ(resumed.reset_at, 0u);
      last = resumed.position;
    } while (!resumed.live);
    if (round % 100 == 0) pause(1);
    if (round == 5000) {
      done = true;
      maker.join();
    }
    router.unsubscribe(SubscriberId(round));
    for (const uint64_t id : inbox.ids(0, SubscriberId(round))) seen.push_back(id);
    if (!seen.empty()) last = seen.back();
  }
  ASSERT_EQ(seen.size(), log.last_id());
  for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i + 1);
}

}  // namespace
}  // namespace turnstile
