// Streams at the seam between what is delivered and what is read from the log, on a loop that does one thing
// at a time, when the test says so.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>

#include "http/peer.h"
#include "server/loop_handler.h"

namespace turnstile {
namespace {

using http::ConnectionId;

// Its one connection is a stream.
class TestLoop final : public http::Loop {
 public:
  unsigned index() const override { return 0; }
  void post(std::function<void()> task) override { tasks.push_back(std::move(task)); }
  bool answer(ConnectionId, const http::Response&) override { return false; }
  void set_timer(ConnectionId, Duration) override {}
  void watch(ConnectionId) override {}
  http::Streamed stream(ConnectionId, const std::shared_ptr<const std::string>& bytes) override {
    if (!has_room) return http::Streamed::full;
    sent += *bytes;
    return http::Streamed::queued;
  }
  void tell_when_drained(ConnectionId) override { ++full; }
  void close(ConnectionId) override { closed = true; }
  void open_gate(uint64_t) override {}
  void drop_output() override {}
  size_t connections() const override { return 1; }

  void run_one() {
    const auto task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }
  void run() {
    while (!tasks.empty()) run_one();
  }

  std::deque<std::function<void()>> tasks;
  bool has_room = true, closed = false;
  int full = 0;
  std::string sent;
};

class StreamsTest : public ::testing::Test {
 protected:
  StreamsTest() {
    auto begun =
        Service::begin(settings_.engine, make_memory_journal(), 1, common_.metrics(), [](const Error&) {});
    EXPECT_TRUE(begun);
    service_ = *std::move(begun);
    service_->attach(0, handler_);
    handler_.begin_life(*service_);
  }
  ~StreamsTest() override { service_->detach(); }

  void open(std::string_view path, std::string_view query) {
    class OneResponder final : public http::Responder {
     public:
      void respond(const http::Response& response) override { ADD_FAILURE() << response.body; }
      void start_stream(const http::Response&) override {}
    } responder;
    http::Peer peer;
    peer.address = "127.0.0.1";
    static const std::string padding(http::kBodyPadding, '\0');
    http::Request request;
    request.method = http::Method::get;
    request.method_text = "GET";
    request.path = path;
    request.query = query;
    request.body = std::string_view(padding).substr(0, 0);
    request.peer = &peer;
    request.connection = kStream;
    EXPECT_EQ(handler_.handle(request, responder), http::Handled::stream);
  }
  // An event `granted` of a lane of its own, which can be seen at once.
  void grant(std::string_view resource) {
    LockCommand lock;
    lock.lane = {OperationName("own"), ResourceId(resource)};
    lock.who.node = NodeId("n");
    effects_.clear();
    service_->engine().lock(lock, service_->now(), effects_);
    service_->gate().unanswered(effects_);
  }
  size_t told(std::string_view resource) const {
    const std::string name = fmt::format("\"resource_id\":\"{}\"", resource);
    size_t count = 0;
    for (size_t at = loop_.sent.find(name); at != std::string::npos; at = loop_.sent.find(name, at + 1))
      ++count;
    return count;
  }

  static constexpr auto kStream = ConnectionId(1);
  const Settings settings_;
  Common common_{settings_};
  TestLoop loop_;
  LoopHandler handler_{common_, loop_};
  std::unique_ptr<Service> service_;
  Effects effects_;
};

TEST_F(StreamsTest, S28_WhatWasOnItsWayToAStreamThatHasCaughtUpMeanwhileIsToldOnce) {
  open("/events", "");
  grant("a");
  grant("b");
  grant("c");
  ASSERT_EQ(loop_.tasks.size(), 3u);
  loop_.has_room = false;
  loop_.run_one();
  EXPECT_EQ(loop_.full, 1);
  EXPECT_EQ(service_->router().count(), 0u) << "what it misses it will read from the log";
  loop_.has_room = true;
  handler_.on_drained(kStream);
  EXPECT_EQ(service_->router().count(), 1u);
  grant("d");
  loop_.run();
  for (const char* resource : {"a", "b", "c", "d"}) EXPECT_EQ(told(resource), 1u) << resource;
}

TEST_F(StreamsTest, OneThatEndsIsNotLookedForAnyMore) {
  open("/events", "");
  EXPECT_EQ(service_->router().count(), 1u);
  handler_.on_closed(kStream);
  EXPECT_EQ(service_->router().count(), 0u);
}

// A lane's stream cannot go on behind what has been overwritten: its state is told only at its beginning.
TEST_F(StreamsTest, S28_OneOfALaneThatHasFallenOutOfTheLogEndsAndIsNotLookedForAnyMore) {
  open("/lock/subscribe", "type=own&resource_id=r");
  loop_.has_room = false;
  grant("r");
  loop_.run();
  EXPECT_EQ(loop_.full, 1);
  for (size_t i = 0; i <= EventLogSettings().max_events; ++i) grant(std::to_string(i));
  loop_.has_room = true;
  handler_.on_drained(kStream);
  EXPECT_EQ(service_->router().count(), 0u);
  loop_.run();
  EXPECT_TRUE(loop_.closed);
  EXPECT_EQ(told("r"), 0u);
}

}  // namespace
}  // namespace turnstile
