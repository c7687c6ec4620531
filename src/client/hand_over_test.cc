// Several servers of which one leads: how a client finds it, and what its caller sees of a change (nothing).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "client/test_transport.h"

namespace turnstile::client {
namespace {

using namespace std::chrono_literals;

std::string not_leader(const std::string& leader) {
  return fmt::format(R"({{"error":"another server leads","code":"not_leader","leader":"{}"}})", leader);
}

// Three servers: who leads, who is away, and who swallows what it is sent, as functions of the time.
struct HandOver : testing::Test {
  HandOver() {
    client.transport->otherwise = [this](const Exchange& exchange) { return ask(exchange); };
  }

  AnswerOrError ask(const Exchange& exchange) {
    const std::string server(exchange.server);
    if (hangs == server) {
      client.timing->advance(exchange.timeout);
      return silent();
    }
    client.timing->advance(1ms);
    if (dead == server) return unreachable();
    if (leader.empty()) return answer(503, refusal("no_leader"));
    if (leader != server) return answer(307, not_leader(leader));
    if (exchange.target == "/lock") return answer(200, kAcquired);
    if (exchange.target == "/renew") return answer(200, kRenewed);
    if (exchange.target == "/unlock") return answer(200, kReleased);
    return answer(200, "{}");
  }
  size_t asked(const std::string& server) const {
    return size_t(std::ranges::count(client.transport->seen, server, &TestTransport::Seen::server));
  }
  std::vector<std::string> servers() const {
    std::vector<std::string> all;
    for (const auto& seen : client.transport->seen) all.push_back(seen.server);
    return all;
  }
  std::expected<Reply, CallFailure> call(int retries = -1) {
    return client.core->caller().call({.target = "/x", .retries = retries});
  }

  TestClient client{ClientSettings{.servers = {"http://a", "http://b", "http://c"}}};
  std::string leader = "http://a", dead, hangs;
};

TEST_F(HandOver, TheLeaderThatIsNamedIsAskedAtOnceAndRemembered) {
  leader = "http://c";
  ASSERT_TRUE(call(0));
  ASSERT_TRUE(call(0));
  EXPECT_EQ(servers(), (std::vector<std::string>{"http://a", "http://c", "http://c"}));
  EXPECT_TRUE(client.timing->slept().empty());
}

TEST_F(HandOver, ALeaderThatNobodyToldUsOfIsFollowedWithoutACredential) {
  leader = "http://d:1";
  ASSERT_TRUE(call());
  EXPECT_EQ(servers(), (std::vector<std::string>{"http://a", "http://d:1"}));
  dead = "http://d:1";
  leader = "http://b";
  ASSERT_TRUE(call());
  EXPECT_EQ(servers().back(), "http://b");
}

TEST_F(HandOver, ACredentialIsNotTakenToAStrangerWhomAPlainAnswerNames) {
  TestClient with{
      ClientSettings{.servers = {"http://a", "http://b"}, .credential = "ts_secret", .max_retries = 0}};
  with.transport->otherwise = [](const Exchange&) { return answer(307, not_leader("http://evil:1")); };
  const auto reply = with.core->caller().call({.target = "/x", .over_hand_over = false});
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().error.message.find("http://evil:1"), std::string::npos);
  EXPECT_EQ(reply.error().error.message.find("ts_secret"), std::string::npos);
  for (const auto& seen : with.transport->seen) EXPECT_NE(seen.server, "http://evil:1");
}

TEST_F(HandOver, IsNoErrorWhileItLasts) {
  leader.clear();
  client.transport->script.push_back([this](const Exchange& exchange) { return ask(exchange); });
  const auto began = client.timing->now();
  client.transport->otherwise = [this, began](const Exchange& exchange) {
    if (client.timing->now() - began > 6s) leader = "http://b";
    return ask(exchange);
  };
  for (const int retries : {-1, 0}) {
    leader.clear();
    ASSERT_TRUE(call(retries)) << retries;
  }
  for (const Milliseconds pause : client.timing->slept()) EXPECT_LE(pause, 400ms);
}

TEST_F(HandOver, OfWhichNoEndIsSeenIsToldInTheEnd) {
  leader.clear();
  const auto began = client.timing->now();
  const auto reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().error.code, ErrorCode::unavailable);
  EXPECT_TRUE(reply.error().error.message.starts_with("no server leads: asked http://"))
      << reply.error().error.message;
  EXPECT_FALSE(reply.error().maybe_done);
  EXPECT_GE(client.timing->now() - began, 14s);
  EXPECT_LE(client.timing->now() - began, 16s);
}

TEST_F(HandOver, ADeadLeaderThatOthersStillNameIsNotAskedAgainAndAgain) {
  dead = "http://a";
  const auto began = client.timing->now();
  client.transport->otherwise = [this, began](const Exchange& exchange) {
    if (client.timing->now() - began > 5s) leader = "http://c";
    return ask(exchange);
  };
  ASSERT_TRUE(call());
  EXPECT_LT(asked("http://a"), 18u);
  EXPECT_GT(asked("http://b"), 5u);
}

TEST_F(HandOver, WhatMayHaveBeenDoneIsNotAskedForAgainByOneWhoAsksOnce) {
  client.transport->then(answer(503, refusal("outcome_unknown")));
  const auto once = call(0);
  ASSERT_FALSE(once);
  EXPECT_TRUE(once.error().maybe_done);
  EXPECT_EQ(client.transport->seen.size(), 1u);
  client.transport->then(answer(503, refusal("outcome_unknown")));
  const auto again = call();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->maybe_done);
}

// The answer of a first try that ended one hold is lost: a second one would end the next.
TEST_F(HandOver, WhatEndsOtherPeoplesWorkIsDoneOnce) {
  for (auto call : {+[](LockClient& all) { return all.break_hold("mutex", "r", "why").error(); },
                    +[](LockClient& all) { return all.forget("once", "r").error(); }}) {
    client.transport->seen.clear();
    client.transport->then(answer(503, refusal("outcome_unknown")));
    const ClientError error = call(*client.client);
    EXPECT_EQ(error.code, ErrorCode::unavailable);
    EXPECT_NE(error.message.find("look at the status first"), std::string::npos) << error.message;
    EXPECT_EQ(client.transport->seen.size(), 1u);
  }
  // What was refused unseen is asked for again.
  client.transport->then(answer(503, refusal("no_leader")));
  client.transport->then(answer(200, R"({"broken":true,"node_id":"b"})"));
  EXPECT_EQ(*client.client->break_hold("mutex", "r", "why"), "b");
}

// Whatever the moment is at which the leader goes, and whether it refuses or swallows what it is sent.
TEST_F(HandOver, ALeaseOfTenSecondsSurvivesASixSecondTakeOver) {
  for (const bool swallows : {false, true}) {
    for (auto phase = 0ms; phase < 2'400ms; phase += 150ms) {
      leader = "http://a";
      dead = hangs = "";
      client.transport->otherwise = [this](const Exchange& exchange) { return ask(exchange); };
      Expected<LockResult> result = client.client->try_lock({.operation = "mutex", .resource = "r"});
      ASSERT_TRUE(result && result->acquired());
      const auto goes = client.timing->now() + 2s + phase;
      bool lost = false;
      client.transport->otherwise = [&, goes, swallows](const Exchange& exchange) {
        const auto now = client.timing->now();
        lost |= result->hold.state() == HoldState::lost;
        if (now >= goes) (swallows ? hangs : dead) = "http://a";
        if (now >= goes + 5s) leader = "";
        if (now >= goes + 6s) leader = "http://c";
        return ask(exchange);
      };
      while (client.timing->now() < goes + 12s) {
        const auto next = client.core->keeper().step();
        lost |= result->hold.state() == HoldState::lost;
        ASSERT_FALSE(lost) << "phase " << phase.count() << (swallows ? ", swallowed" : ", refused");
        client.timing->advance(std::clamp<Steady::duration>(next - client.timing->now(), 1ms, 500ms));
      }
      EXPECT_EQ(result->hold.state(), HoldState::held);
      EXPECT_TRUE(result->hold.release(WorkResult::succeeded()));
    }
  }
}

// The first server takes connections and never answers: a short wait must still reach the others.
TEST_F(HandOver, AServerThatHangsDoesNotTakeTheTimeOfTheOthers) {
  hangs = "http://a";
  leader = "http://c";
  for (const bool wait : {false, true}) {
    const auto until = client.timing->now() + 3s;
    const LockRequest request{.operation = "pull", .resource = "r"};
    auto result = wait ? client.client->lock(request, until) : client.client->try_lock(request, until);
    ASSERT_TRUE(result && result->acquired()) << wait;
    EXPECT_LT(client.timing->now(), until);
  }
}

// One that is slow, and would have answered, is not given up as long as there is time for all of them.
TEST_F(HandOver, WhereThereIsTimeForAllServersEachHasItsWholeTimeOut) {
  for (const auto& [left, share] : {std::pair(60s, 5'000ms), {6s, 2'033ms}}) {
    const LockRequest request{.operation = "pull", .resource = "r"};
    const auto result = client.client->lock(request, client.timing->now() + left);
    ASSERT_TRUE(result && result->acquired());
    EXPECT_EQ(client.transport->seen.back().timeout, share) << left.count();
  }
}

TEST_F(HandOver, AReleaseGoesToTheNextLeaderAndIsConfirmed) {
  Expected<LockResult> result = client.client->try_lock({.operation = "mutex", .resource = "r"});
  ASSERT_TRUE(result && result->acquired());
  leader = "http://b";
  dead = "http://a";
  const Expected<Released> released = result->hold.release(WorkResult::succeeded());
  ASSERT_TRUE(released);
  EXPECT_TRUE(released->confirmed);
}

TEST_F(HandOver, AStreamEndsWhenAnotherServerLeadsAndGoesOnThere) {
  std::atomic<bool> open = false;
  std::vector<std::string> streams, ids;
  std::mutex mutex;
  client.transport->on_stream = [&](const Exchange& exchange,
                                    const Transport::Bytes& bytes) -> AnswerOrError {
    {
      const std::lock_guard lock(mutex);
      streams.emplace_back(exchange.server);
      ids.emplace_back(exchange.last_event_id);
      if (exchange.server != leader) return answer(307, not_leader(leader));
    }
    bytes(
        "id: 7-1\ndata: "
        "{\"event\":\"granted\",\"type\":\"mutex\",\"resource_id\":\"r\",\"node_id\":\"n\"}\n\n");
    open = true;
    while (!exchange.stop.stop_requested()) std::this_thread::yield();
    return stopped();
  };
  {
    auto subscription = client.client->subscribe({}, [](const Event&) {});
    ASSERT_TRUE(subscription);
    while (!open) std::this_thread::yield();
    open = false;
    {
      const std::lock_guard lock(mutex);
      leader = "http://b";
    }
    ASSERT_TRUE(call());  // finds the new leader; the old one says nothing at all
    while (!open) std::this_thread::yield();
  }
  EXPECT_EQ(streams, (std::vector<std::string>{"http://a", "http://b"}));
  EXPECT_EQ(ids, (std::vector<std::string>{"", "7-1"}));
}

TEST_F(HandOver, AServerThatIsNotTrustedIsPassedOver) {
  client.transport->then(
      std::unexpected(TransportError{Fault::untrusted, false, "its certificate is another's"}));
  leader = "http://b";
  ASSERT_TRUE(call());
  client.transport->otherwise = [](const Exchange&) -> AnswerOrError {
    return std::unexpected(TransportError{Fault::untrusted, false, "its certificate is another's"});
  };
  const auto reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().error.code, ErrorCode::not_turnstile);
  EXPECT_EQ(client.timing->slept().size(), 0u);
}

}  // namespace
}  // namespace turnstile::client
