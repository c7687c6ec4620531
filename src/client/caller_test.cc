// What is tried again, where, and how soon.
#include "client/caller.h"

#include <gtest/gtest.h>

#include "client/test_transport.h"

namespace turnstile::client {
namespace {

struct CallerTest : testing::Test {
  std::shared_ptr<TestTransport> transport = std::make_shared<TestTransport>();
  std::shared_ptr<TestTiming> timing = std::make_shared<TestTiming>();
  ClientSettings settings{.servers = {"http://a", "http://b"}};
  std::vector<std::string> servers() const {
    std::vector<std::string> all;
    for (const auto& seen : transport->seen) all.push_back(seen.server);
    return all;
  }
  std::expected<Reply, CallFailure> call() {
    return Caller(settings, transport, timing).call({.target = "/lock", .body = "{}"});
  }
};
using L11 = CallerTest;
using Retries = CallerTest;

TEST_F(L11, TimeOutsBrokenConnectionsAnd5xxAreTriedAgainEachAtTheNextServer) {
  transport->then(silent());
  transport->then(broken());
  transport->then(unreachable());
  transport->then(answer(502, "<html>bad gateway"));
  transport->then(answer(503, refusal("store_unavailable")));
  transport->then(answer(200, "{}"));
  const auto reply = call();
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->maybe_done);
  EXPECT_EQ(servers(), (std::vector<std::string>{"http://a", "http://b", "http://a", "http://b", "http://a",
                                                 "http://b"}));
}

TEST_F(L11, A4xxIsNeverTriedAgain) {
  for (const int status : {400, 401, 403, 404, 405, 413, 431}) {
    transport->seen.clear();
    transport->then(answer(status, refusal("invalid")));
    EXPECT_FALSE(call());
    EXPECT_EQ(transport->seen.size(), 1u) << status;
  }
}

TEST_F(Retries, AskAllServersBeforeAPauseAndNameThemInTheEnd) {
  const auto reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().error.code, ErrorCode::unavailable);
  EXPECT_FALSE(reply.error().maybe_done);
  EXPECT_EQ(transport->seen.size(), 12u);
  EXPECT_EQ(reply.error().error.message,
            "no server answered: tried http://a (connection refused), http://b (connection refused)");
  const auto slept = timing->slept();
  ASSERT_EQ(slept.size(), 5u);
  for (size_t i = 0; i < slept.size(); ++i) {
    EXPECT_GE(slept[i], Milliseconds(50 << i));
    EXPECT_LE(slept[i], Milliseconds(100 << i));
  }
}

TEST_F(Retries, HonourRetryAfterWithinReason) {
  transport->script.push_back([](const Exchange&) -> AnswerOrError {
    return Answer{
        .status = 429, .body = refusal("too_many_requests"), .retry_after = std::chrono::seconds(600)};
  });
  transport->then(answer(200, "{}"));
  ASSERT_TRUE(call());
  ASSERT_EQ(timing->slept().size(), 1u);
  EXPECT_EQ(timing->slept()[0], Milliseconds(2000));
}

TEST_F(Retries, AnAnswerThatIsNotOursIsNoTurnstile) {
  for (const AnswerOrError& odd : {answer(404, "<html>not found"), answer(302, ""), answer(200, "<html>")}) {
    transport->then(odd);
    const auto read = read_reply(call(), read_cancel);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::not_turnstile);
  }
}

TEST_F(Retries, EveryCodeOfTheServersHasAClass) {
  const std::vector<std::tuple<int, std::string, ErrorCode>> table = {
      {400, "invalid", ErrorCode::invalid},
      {401, "unauthorized", ErrorCode::unauthenticated},
      {403, "forbidden", ErrorCode::unauthenticated},
      {403, "busy", ErrorCode::refused},
      {403, "referenced", ErrorCode::refused},
      {403, "failed", ErrorCode::failed},
      {403, "not_held", ErrorCode::lost},
      {403, "not_holder", ErrorCode::lost},
      {403, "stale_token", ErrorCode::lost},
      {403, "references_off", ErrorCode::refused},
      {404, "unknown_path", ErrorCode::not_turnstile},
      {405, "method_not_allowed", ErrorCode::invalid},
      {413, "too_large", ErrorCode::invalid},
      {431, "headers_too_large", ErrorCode::invalid},
      {429, "queue_full", ErrorCode::refused},
      {429, "too_many_requests", ErrorCode::refused},
      {408, "timeout", ErrorCode::unavailable},
      {307, "not_leader", ErrorCode::unavailable},
      {503, "no_leader", ErrorCode::unavailable},
      {503, "outcome_unknown", ErrorCode::unavailable},
      {503, "store_unavailable", ErrorCode::unavailable},
      {503, "shutting_down", ErrorCode::unavailable}};
  for (const auto& [status, code, expected] : table) {
    transport->otherwise = [status, code](const Exchange&) { return answer(status, refusal(code)); };
    const auto reply = call();
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().error.code, expected) << code;
    EXPECT_EQ(reply.error().error.reason, code);
  }
}

TEST_F(Retries, AreEndedByAStop) {
  std::stop_source stop;
  transport->otherwise = [&](const Exchange&) {
    stop.request_stop();
    return broken();
  };
  const auto reply = Caller(settings, transport, timing).call({.target = "/x", .stop = stop.get_token()});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().error.code, ErrorCode::cancelled);
  EXPECT_EQ(transport->seen.size(), 1u);
}

}  // namespace
}  // namespace turnstile::client
