// The client against a real server: every path that it uses, and the holes of an earlier client (L7-L12, D7).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "client/core.h"
#include "client/curl_transport.h"
#include "server_process.h"

namespace turnstile {
namespace {

using namespace std::chrono_literals;
using Clock = LockClient::Clock;
constexpr auto kForEver = Clock::time_point::max();

LockRequest request(const std::string& operation, const std::string& resource = "r") {
  return {.operation = operation, .resource = resource};
}

std::string way_name(const testing::TestParamInfo<WaitBy>& way) {
  constexpr const char* kNames[] = {"Automatic", "LongPoll", "Stream", "StatusPoll"};
  return kNames[size_t(way.param)];
}

// Something that another thread waits for.
template <class T>
class Box {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  T take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 60s, [&] { return !values_.empty(); })) {
      ADD_FAILURE() << "what was waited for has not come";
      return T();
    }
    T value = std::move(values_.front());
    values_.erase(values_.begin());
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

void wait_until_queued(LockClient& client, const std::string& operation, size_t length) {
  EXPECT_TRUE(eventually([&] {
    const auto seen = client.status(operation, "r");
    return seen && seen->queue.size() >= length;
  }));
}

// What a client hears of everything, from when it surely hears everything.
struct Listening {
  explicit Listening(LockClient& client)
      : subscription(client.subscribe({.open_within = 60s}, [this](const Event& event) {
          events.put((event.resource.empty() ? "" : event.resource + " ") + event.event);
        })) {
    EXPECT_TRUE(subscription) << subscription.error().message;
  }
  Box<std::string> events;
  Expected<Subscription> subscription;
};

// Does what it is asked, and then loses the answer, as often as it is told.
class Losing : public client::Transport {
 public:
  explicit Losing(const ClientSettings& settings) : inner_(settings) {}
  std::expected<client::Answer, client::TransportError> exchange(const client::Exchange& exchange) override {
    auto answer = inner_.exchange(exchange);
    if (to_lose_ > 0) {
      --to_lose_;
      return std::unexpected(client::TransportError{client::Fault::broken, true, "lost"});
    }
    return answer;
  }
  std::expected<client::Answer, client::TransportError> stream(const client::Exchange& exchange,
                                                               const Bytes& bytes) override {
    return inner_.stream(exchange, bytes);
  }
  std::atomic<int> to_lose_ = 0;

 private:
  client::CurlTransport inner_;
};

TEST(L9, EveryPathThatTheClientUsesIsThereOnTheRealServer) {
  ServerProcess server;
  LockClient a = server.client("a"), b = server.client("b");
  auto held = a.lock(request("mutex"));
  ASSERT_TRUE(held && held->acquired()) << held.error().message;
  EXPECT_TRUE(held->hold.renew());
  EXPECT_EQ(*a.renew("mutex", "r", held->hold.token(), 5s, held->hold.request_id()), 5s);
  EXPECT_EQ(b.try_lock(request("mutex")).error().code, ErrorCode::busy);
  EXPECT_EQ(a.status("mutex", "r")->queue_length, 0u);
  LockRequest staying = request("mutex");
  staying.stay_when_busy = true;
  auto queued = b.try_lock(staying);
  ASSERT_TRUE(queued && queued->queued());
  EXPECT_EQ(queued->waiting->holder, "a");
  EXPECT_EQ(a.list()->lanes.size(), 1u);
  EXPECT_TRUE(*b.cancel("mutex", "r", queued->request_id));
  EXPECT_FALSE(*b.cancel("mutex", "r", queued->request_id));
  EXPECT_EQ(*b.break_hold("mutex", "r", "test"), "a");
  EXPECT_EQ(b.break_hold("mutex", "r", "test").error().code, ErrorCode::refused);
  EXPECT_EQ(held->hold.renew().error().code, ErrorCode::lost);
  EXPECT_EQ(held->hold.state(), HoldState::lost);
  EXPECT_EQ(held->hold.release(WorkResult::succeeded()).error().code, ErrorCode::lost);
  EXPECT_TRUE(a.add_reference("r")->changed);
  EXPECT_EQ(b.references("r")->nodes, std::vector<std::string>{"a"});
  EXPECT_EQ(b.try_lock(request("delete")).error().nodes, std::vector<std::string>{"a"});
  EXPECT_TRUE(a.release_reference("r")->changed);
  EXPECT_TRUE(a.add_reference("r2"));
  EXPECT_EQ(*b.release_node("a"), 1u);
  EXPECT_NE(a.version()->find("version"), std::string::npos);
  auto taken = a.lock(request("mutex"));
  EXPECT_TRUE(a.unlock("mutex", "r", WorkResult::succeeded(), taken->hold.token(), taken->hold.request_id()));
  EXPECT_TRUE(taken->hold.release(WorkResult::succeeded())->already);
}

TEST(L9, ManyAreLockedAndReleasedInOneRoundTrip) {
  ServerProcess server;
  LockClient a = server.client("a"), b = server.client("b");
  std::vector<LockRequest> requests;
  for (int i = 0; i < 1500; ++i) requests.push_back(request("mutex", "layer-" + std::to_string(i)));
  auto taken = a.try_lock_all(requests);
  ASSERT_TRUE(taken);
  std::vector<Hold> holds;
  for (auto& one : *taken) {
    ASSERT_TRUE(one && one->acquired());
    holds.push_back(std::move(one->hold));
  }
  const auto refused = b.try_lock_all(requests);
  for (const auto& one : *refused) EXPECT_EQ(one.error().code, ErrorCode::busy);
  EXPECT_TRUE(a.list({.state = "held", .limit = 1})->lanes[0].queue.empty());
  const auto released = a.release_all(holds, WorkResult::succeeded());
  for (const auto& one : *released) EXPECT_TRUE(one);
  EXPECT_TRUE(a.list()->lanes.empty());
}

TEST(L9, ManyReferencesAreAddedInOneRoundTrip) {
  ServerProcess server;
  LockClient a = server.client("a"), b = server.client("b");
  EXPECT_TRUE(b.lock(request("delete", "use-7"))->acquired()) << "and is given back";
  auto deleting = b.lock(request("delete", "use-9"));
  ASSERT_TRUE(deleting && deleting->acquired());
  std::vector<std::string> uses;
  for (int i = 0; i < 1500; ++i) uses.push_back("use-" + std::to_string(i));
  const auto added = a.add_references(uses);
  ASSERT_TRUE(added && added->size() == uses.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    if (i == 9) {
      EXPECT_EQ((*added)[i].error().reason, "busy");
      continue;
    }
    ASSERT_TRUE((*added)[i]) << uses[i];
    EXPECT_EQ((*added)[i]->resource, uses[i]);
    EXPECT_EQ((*added)[i]->count, 1u);
    EXPECT_TRUE((*added)[i]->changed);
  }
  EXPECT_EQ(a.references("use-1499")->nodes, std::vector<std::string>{"a"});
  EXPECT_TRUE(a.add_references({})->empty());
  EXPECT_EQ(*a.release_node("a"), 1499u);
  server.kill_now();
  EXPECT_EQ(a.add_references(uses).error().code, ErrorCode::unavailable);
}

class L8 : public testing::TestWithParam<WaitBy> {};

TEST_P(L8, ChainOfImmediateFailuresOver100WaitersNeverStalls) {
  ServerProcess server;
  LockClient first = server.client("first");
  auto held = first.lock(request("pull"));
  ASSERT_TRUE(held && held->acquired());
  std::mutex mutex;
  std::set<uint64_t> tokens;
  std::set<uint32_t> attempts;
  std::vector<std::jthread> threads;
  ClientSettings settings = server.settings("waiter");
  settings.wait_by = GetParam();
  settings.status_interval = 10ms;
  LockClient waiter = std::move(*LockClient::create(settings));
  for (int i = 0; i < 100; ++i) {
    threads.emplace_back([&] {
      auto result = waiter.lock(request("pull"));
      ASSERT_TRUE(result && result->acquired());
      EXPECT_EQ(result->hold.previous_error(), "next one");
      {
        const std::lock_guard lock(mutex);
        tokens.insert(result->hold.token());
        attempts.insert(result->hold.attempt());
      }
      EXPECT_TRUE(result->hold.release(WorkResult::failed("next one")));
    });
  }
  wait_until_queued(first, "pull", 100);
  EXPECT_TRUE(held->hold.release(WorkResult::failed("next one")));
  threads.clear();
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ(*attempts.rbegin(), 101u);
}

INSTANTIATE_TEST_SUITE_P(EveryWay, L8,
                         testing::Values(WaitBy::automatic, WaitBy::stream, WaitBy::status_poll), way_name);

TEST(Waiters, SkipTogetherWhenTheWorkIsDone) {
  ServerProcess server;
  LockClient first = server.client("first");
  auto held = first.lock(request("pull"));
  std::vector<std::jthread> threads;
  std::atomic<int> skipped = 0;
  for (const WaitBy way : {WaitBy::long_poll, WaitBy::stream, WaitBy::status_poll}) {
    threads.emplace_back([&server, &skipped, way] {
      ClientSettings settings = server.settings("w" + std::to_string(int(way)));
      settings.wait_by = way;
      const auto result = LockClient::create(settings)->lock(request("pull"));
      if (result && result->skipped()) ++skipped;
    });
  }
  wait_until_queued(first, "pull", 3);
  EXPECT_TRUE(held->hold.release(WorkResult::succeeded()));
  threads.clear();
  EXPECT_EQ(skipped, 3);
}

TEST(L11, ALostAnswerAndARetryAreTheSameHoldAndOneEntry) {
  ServerProcess server;
  const auto lossy = std::make_shared<Losing>(server.settings("a"));
  LockClient a(std::make_shared<LockClient::Core>(server.settings("a"), lossy));
  lossy->to_lose_ = 2;
  auto held = a.lock(request("mutex"));
  ASSERT_TRUE(held && held->acquired());
  EXPECT_EQ(a.status("mutex", "r")->holder->token, held->hold.token());
  LockRequest staying = request("mutex");
  staying.stay_when_busy = true;
  lossy->to_lose_ = 2;
  const auto queued = a.try_lock(staying);
  ASSERT_TRUE(queued && queued->queued());
  EXPECT_EQ(a.status("mutex", "r")->queue_length, 1u);
}

TEST(D7, AnUnlockWhoseAnswerIsLostIsReleasedByItsRetry) {
  ServerProcess server;
  const auto lossy = std::make_shared<Losing>(server.settings("a"));
  LockClient a(std::make_shared<LockClient::Core>(server.settings("a"), lossy));
  auto held = a.lock(request("pull"));
  lossy->to_lose_ = 1;
  const auto released = held->hold.release(WorkResult::succeeded());
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_TRUE(released->already);
  EXPECT_TRUE(a.status("pull", "r")->completion->success);
}

class L12 : public testing::TestWithParam<WaitBy> {};

TEST_P(L12, ACancelledWaiterIsGoneWhenLockReturns) {
  ServerProcess server;
  LockClient a = server.client("a");
  auto held = a.lock(request("mutex"));
  ClientSettings settings = server.settings("b");
  settings.wait_by = GetParam();
  // None of what it waits for ends by itself within the time that is measured below.
  settings.long_poll = settings.heartbeat = settings.status_interval = 10min;
  LockClient b = std::move(*LockClient::create(settings));
  std::stop_source stop;
  Clock::time_point stopped_at;
  std::jthread stopper([&] {
    wait_until_queued(a, "mutex", 1);
    stopped_at = Clock::now();
    stop.request_stop();
  });
  const auto result = b.lock(request("mutex"), kForEver, stop.get_token());
  stopper.join();
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
  EXPECT_LT(Clock::now() - stopped_at, 60s);  // a round trip, on a machine that may be busy
  EXPECT_EQ(a.status("mutex", "r")->queue_length, 0u);
}

INSTANTIATE_TEST_SUITE_P(EveryWay, L12,
                         testing::Values(WaitBy::automatic, WaitBy::stream, WaitBy::status_poll), way_name);

// Answers each connection with the beginning of a stream, and then says nothing.
class SilentServer {
 public:
  SilentServer() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~SilentServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    for (const int connection : connections_) close(connection);
  }
  const std::string& url() const { return url_; }
  std::string next_head() { return heads_.take(); }

 private:
  void run() {
    for (;;) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      connections_.push_back(connection);
      std::string head;
      char buffer[1024];
      while (head.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
        if (got <= 0) break;
        head.append(buffer, size_t(got));
      }
      const std::string_view start =
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\nid: 41\ndata: "
          "{\"event\":\"granted\"}\n\n";
      send(connection, start.data(), start.size(), MSG_NOSIGNAL);
      heads_.put(head);
    }
  }

  int listener_;
  std::string url_;
  std::vector<int> connections_;
  Box<std::string> heads_;
  std::thread thread_;
};

TEST(L7, AStreamSilentForTwoHeartbeatsIsGivenUpAndResumedBehindItsLastEvent) {
  SilentServer server;
  ClientSettings settings{.servers = {server.url()}, .node_id = "a"};
  settings.heartbeat = 50ms;
  LockClient a = std::move(*LockClient::create(settings));
  auto subscription = a.subscribe({}, [](const Event&) {});
  EXPECT_EQ(server.next_head().find("Last-Event-ID"), std::string::npos);
  // On a machine that stalls it may be given up before its first event is read, even several times.
  std::string head;
  for (int i = 0; i < 50 && head.find("Last-Event-ID") == std::string::npos; ++i) head = server.next_head();
  EXPECT_NE(head.find("Last-Event-ID: 41"), std::string::npos);
}

TEST(Subscriptions, TellEveryEventInOrderAndGoOnAfterARestart) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("turnstile-client-" + std::to_string(getpid()));
  ServerProcess server({"--store", "file:" + folder.string()});
  LockClient a = server.client("a");
  Listening listening(a);
  auto held = a.lock(request("mutex"));
  EXPECT_EQ(listening.events.take(), "r granted");
  EXPECT_TRUE(held->hold.release(WorkResult::failed("why")));
  EXPECT_EQ(listening.events.take(), "r failed");
  server.restart();  // nothing was missed, so there is no reset (S28)
  held = a.lock(request("mutex"), Clock::now() + 60s);
  EXPECT_EQ(listening.events.take(), "r granted");
  std::filesystem::remove_all(folder);
}

TEST(Subscriptions, EndWithAnErrorThatTryingAgainWouldNotMend) {
  ServerProcess server;
  LockClient a = server.client("a");
  Box<ErrorCode> ends;
  auto subscription = a.subscribe(
      {.operation = "mutex", .resource = std::string(5000, 'x')}, [](const Event&) {},
      [&](const ClientError& error) { ends.put(error.code); });
  EXPECT_EQ(ends.take(), ErrorCode::invalid);
}

TEST(Waiters, KeepTheirPlaceOverAKillOfTheServer) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("turnstile-place-" + std::to_string(getpid()));
  // However long the waiter takes to come back.
  ServerProcess server(
      {"--store", "file:" + folder.string(), "--bond-grace", "10m", "--claim-timeout", "10m"});
  LockClient a = server.client("a"), b = server.client("b");
  auto held = a.lock(request("mutex"));
  std::jthread waiter([&] {
    auto result = b.lock(request("mutex"));
    EXPECT_TRUE(result && result->acquired());
  });
  wait_until_queued(a, "mutex", 1);
  server.restart();
  EXPECT_EQ(held->hold.release(WorkResult::succeeded())->next, "b");
  waiter.join();
  std::filesystem::remove_all(folder);
}

TEST(Holds, WithAShortLeaseAreKeptByTheClientsThread) {
  ServerProcess server;
  LockClient a = server.client("a");
  LockRequest asked = request("mutex");
  // A machine that stalls for so long that it runs out spoils one try; a client that does not renew, all.
  const auto is_kept = [&] {
    asked.lease *= 2;
    auto held = a.lock(asked);
    if (!held || !held->acquired()) return false;
    held->hold.report_progress(3, 4);
    const auto is_lost = [&] { return held->hold.state() == HoldState::lost; };
    // Renewals are seen by the progress that they carry, and by the belief that they prolong.
    EXPECT_TRUE(eventually([&] {
      const auto seen = a.status("mutex", "r");
      return is_lost() || (seen && seen->holder && seen->holder->done == 3u);
    }));
    const auto first = held->hold.believed_until();
    EXPECT_TRUE(eventually([&] { return is_lost() || held->hold.believed_until() != first; }));
    return !is_lost();
  };
  asked.lease = 500ms;
  bool kept = false;
  for (int i = 0; i < 5 && !kept; ++i) kept = is_kept();
  EXPECT_TRUE(kept);
}

TEST(Holds, WithMonitorLiveAsLongAsTheirSubscription) {
  ServerProcess server({"--store", "memory", "--bond-grace", "50ms"});
  LockClient a = server.client("a"), watcher = server.client("w");
  Listening listening(watcher);
  LockRequest asked = request("mutex", "monitored");
  asked.lease = 0ms;
  asked.monitor = true;
  auto held = a.lock(asked);
  ASSERT_TRUE(held && held->acquired());
  EXPECT_EQ(listening.events.take(), "monitored granted");
  // A hold whose connection ends goes within its grace: once that has happened to another, ours has had time.
  {
    ClientSettings settings = server.settings("dies");
    client::CurlTransport dying(settings);
    const std::string body = R"({"type":"mutex","resource_id":"other","node_id":"dies","monitor":true})";
    ASSERT_TRUE(
        dying.exchange({.server = settings.servers[0], .post = true, .target = "/lock", .body = body}));
  }
  EXPECT_EQ(listening.events.take(), "other granted");
  EXPECT_EQ(listening.events.take(), "other expired");
  EXPECT_EQ(watcher.status("mutex", "monitored")->state, "held");
}

size_t entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(Clients, LeaveNoThreadAndNoDescriptorBehind) {
  ServerProcess server;
  const size_t threads = entries("/proc/self/task");
  {
    LockClient warm = server.client("warm");
    EXPECT_TRUE(warm.lock(request("mutex")));
  }
  // What the warm one used is gone, or will be in a moment.
  EXPECT_TRUE(eventually([&] { return entries("/proc/self/task") == threads; }))
      << entries("/proc/self/task");
  const size_t descriptors = entries("/proc/self/fd");
  for (int i = 0; i < 5; ++i) {
    std::optional<LockClient> a(server.client("a"));
    LockRequest asked = request("mutex");
    asked.monitor = true;
    auto held = a->lock(asked);
    auto subscription = a->subscribe({}, [](const Event&) {});
    ASSERT_TRUE(held && held->acquired() && subscription);
    a.reset();  // holds and subscriptions may outlive it
    EXPECT_TRUE(held->hold.release(WorkResult::succeeded()));
  }
  // A thread that was joined is seen in /proc until the kernel has buried it.
  EXPECT_TRUE(eventually([&] { return entries("/proc/self/task") == threads; }))
      << entries("/proc/self/task");
  EXPECT_TRUE(eventually([&] { return entries("/proc/self/fd") == descriptors; }))
      << entries("/proc/self/fd");
}

TEST(Clients, SpeakOverAUnixSocket) {
  const std::string path = "/tmp/turnstile-client-" + std::to_string(getpid()) + ".sock";
  ServerProcess server({"--store", "memory", "--listen", "unix:" + path});
  LockClient a = std::move(*LockClient::create({.servers = {"unix:" + path}, .node_id = "a"}));
  auto held = a.lock(request("mutex"));
  ASSERT_TRUE(held && held->acquired()) << held.error().message;
  EXPECT_TRUE(held->hold.release(WorkResult::succeeded()));
  std::filesystem::remove(path);
}

TEST(Clients, AreToldWhatIsWrongWithTheirSettings) {
  EXPECT_EQ(LockClient::create({.servers = {"127.0.0.1:8086"}}).error().code, ErrorCode::invalid);
  EXPECT_EQ(LockClient::create({.servers = {}}).error().code, ErrorCode::invalid);
  EXPECT_EQ(LockClient::create({.credential = "a\n"}).error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace turnstile
