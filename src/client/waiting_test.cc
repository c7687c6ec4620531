// lock(): the three ways of waiting, and how a wait ends.
#include "client/waiting.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <set>

#include "client/test_transport.h"

namespace turnstile::client {
namespace {

using namespace std::chrono_literals;
constexpr auto kForEver = Steady::time_point::max();
const LockRequest kRequest{.operation = "pull", .resource = "r"};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

TEST(Lock, IsAskedForShortlyFirstAndThenByALongPoll) {
  TestClient test;
  test.transport->then(answer(200, kQueued));
  test.transport->then(answer(200, kAcquired));
  test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
  auto result = test.client->lock(kRequest);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->acquired());
  EXPECT_EQ(result->hold.token(), 7u);
  EXPECT_FALSE(has(test.transport->seen[0].body, "wait_ms"));
  EXPECT_TRUE(has(test.transport->seen[1].body, R"("wait_ms":30000)"));
  EXPECT_EQ(test.transport->seen[1].timeout, 35s);
}

TEST(L10, AWaiterPassedOver10000TimesKeepsConstantMemory) {
  TestClient test;
  test.transport->keep_seen = false;
  size_t after_100 = 0, after_10000 = 0;
  std::set<const void*> frames;  // where the stack is at each call: a recursion would move it
  test.transport->otherwise = [&](const Exchange& exchange) {
    frames.insert(&exchange);
    if (test.transport->count == 100) after_100 = mallinfo2().uordblks;
    if (test.transport->count < 10'000) return answer(200, kQueued);
    after_10000 = mallinfo2().uordblks;
    return answer(200, kSkipped);
  };
  ASSERT_TRUE(test.client->lock(kRequest)->skipped());
  EXPECT_LE(after_10000, after_100 + 4096);  // under a sanitizer both are 0
  EXPECT_LE(frames.size(), 3u);
}

TEST(Lock, ThatIsStoppedLeavesTheQueueAtOnce) {
  TestClient test;
  std::stop_source stop;
  test.transport->then(answer(200, kQueued));
  test.transport->script.push_back([&](const Exchange&) {
    stop.request_stop();
    return stopped();
  });
  test.transport->then(answer(200, kCancelled));
  const auto result = test.client->lock(kRequest, kForEver, stop.get_token());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
  ASSERT_EQ(test.transport->seen.size(), 3u);
  EXPECT_EQ(test.transport->seen[2].target, "/cancel");
}

TEST(Lock, ThatNeverReachedAServerHasNothingToLeave) {
  TestClient test;
  std::stop_source stop;
  test.transport->script.push_back([&](const Exchange&) {
    stop.request_stop();
    return unreachable();
  });
  EXPECT_EQ(test.client->lock(kRequest, kForEver, stop.get_token()).error().code, ErrorCode::cancelled);
  EXPECT_EQ(test.transport->seen.size(), 1u);
}

// The server may have queued it all the same.
TEST(Lock, ThatHeardNothingButMayHaveBeenHeardLeavesTheQueue) {
  TestClient test;
  test.transport->then(silent());
  test.transport->otherwise = [](const Exchange& exchange) {
    return exchange.target == "/cancel" ? answer(200, kCancelled) : unreachable();
  };
  EXPECT_EQ(test.client->lock(kRequest, test.timing->now() + 3s).error().code, ErrorCode::unavailable);
  EXPECT_EQ(test.transport->seen.back().target, "/cancel");
}

TEST(Lock, ToldToEndByASilentServerSaysOneShortWordAndGoes) {
  TestClient test;
  test.transport->then(answer(200, kQueued));
  test.transport->otherwise = [&](const Exchange& exchange) {
    test.timing->advance(exchange.timeout);
    return silent();
  };
  const auto deadline = test.timing->now() + 3s;
  EXPECT_EQ(test.client->lock(kRequest, deadline).error().code, ErrorCode::timed_out);
  EXPECT_EQ(test.transport->seen.back().target, "/cancel");
  EXPECT_LE(test.timing->now() - deadline, 1s);
}

TEST(L12, AGrantThatCrossedTheCancelIsReleasedAsAFailure) {
  TestClient test;
  test.transport->then(answer(200, kQueued));
  test.transport->otherwise = [&](const Exchange& exchange) {
    if (exchange.target == "/lock") {
      test.timing->advance(1h);
      return silent();
    }
    return answer(200, exchange.target == "/cancel" ? R"({"cancelled":false})" : kReleased);
  };
  const auto result = test.client->lock(kRequest, test.timing->now() + 1s);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::timed_out);
  const auto& last = test.transport->seen.back();
  EXPECT_EQ(last.target, "/unlock");
  EXPECT_TRUE(has(last.body, R"("success":false)"));
  EXPECT_TRUE(has(last.body, "cancelled by the caller"));
}

TEST(Lock, GivesUpAfterItsRetriesWhenNoServerEverAnswered) {
  TestClient test;
  const auto result = test.client->lock(kRequest);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::unavailable);
  EXPECT_EQ(test.transport->seen.size(), 6u);
}

TEST(Lock, WaitsThroughARestartOfTheServerOnceItHasAPlace) {
  TestClient test;
  test.transport->then(answer(200, kQueued));
  for (int i = 0; i < 50; ++i) test.transport->then(unreachable());
  test.transport->then(answer(200, kSkipped));
  EXPECT_TRUE(test.client->lock(kRequest)->skipped());
  for (const auto pause : test.timing->slept()) EXPECT_LE(pause, 2s);
}

TEST(Lock, TriesUntilTheDeadlineWhenThereIsOne) {
  TestClient test;
  const auto result = test.client->lock(kRequest, test.timing->now() + 60s);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::unavailable);
  EXPECT_GT(test.transport->seen.size(), 30u);
}

TEST(Lock, TakesTheStreamWhenLongPollsAreCutShortTwice) {
  TestClient test;
  test.transport->otherwise = [](const Exchange& exchange) {
    return has(exchange.body, "wait_ms") ? answer(504, "<html>gateway timeout") : answer(200, kQueued);
  };
  bool streamed = false;
  test.transport->on_stream = [&](const Exchange& exchange, const Transport::Bytes& bytes) {
    EXPECT_TRUE(
        exchange.target.starts_with("/lock/subscribe?type=pull&resource_id=r&node_id=me&request_id="));
    EXPECT_TRUE(bytes(": turnstile\n\n"));
    EXPECT_TRUE(bytes("id: 1\ndata: {\"event\":\"granted\",\"node_id\":\"other\"}\n\n"));
    streamed = true;
    test.transport->otherwise = [](const Exchange&) { return answer(200, kAcquired); };
    EXPECT_FALSE(bytes("id: 2\ndata: {\"event\":\"granted\",\"node_id\":\"me\"}\n\n"));
    return answer(200, "");
  };
  auto result = test.client->lock(kRequest);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->acquired());
  EXPECT_TRUE(streamed);
  test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
}

TEST(Lock, StaysWithLongPollsWhenOneGoesThroughBetweenTwoThatAreCutShort) {
  TestClient test;
  test.transport->then(answer(200, kQueued));
  test.transport->then(answer(504, ""));
  test.transport->then(answer(200, kQueued));
  test.transport->then(answer(504, ""));
  test.transport->then(answer(200, kSkipped));
  test.transport->on_stream = [](const Exchange&, const Transport::Bytes&) {
    ADD_FAILURE() << "a stream";
    return unreachable();
  };
  EXPECT_TRUE(test.client->lock(kRequest)->skipped());
}

// Each of them may have ended the wait, or has made it this node's turn.
TEST(Lock, ByStreamAsksAtOnceWhenAnEventConcernsIt) {
  for (const std::string event :
       {R"("event":"completed","node_id":"other")", R"("event":"reset")",
        R"("event":"failed","permanent":true,"node_id":"other")", R"("event":"granted","node_id":"me")",
        R"("event":"refused","node_id":"me")", R"("event":"cancelled","node_id":"me")"}) {
    TestClient test({.wait_by = WaitBy::stream});
    test.transport->then(answer(200, kQueued));
    test.transport->on_stream = [&](const Exchange&, const Transport::Bytes& bytes) {
      EXPECT_TRUE(bytes("id: 1\ndata: {\"event\":\"failed\",\"node_id\":\"other\"}\n\n"));
      EXPECT_TRUE(bytes("id: 2\ndata: {\"event\":\"cancelled\",\"node_id\":\"other\"}\n\n"));
      EXPECT_EQ(test.transport->count, 1u) << event;
      test.transport->then(answer(200, kSkipped));
      EXPECT_FALSE(bytes("id: 3\ndata: {" + event + "}\n\n")) << event;
      return answer(200, "");
    };
    EXPECT_TRUE(test.client->lock(kRequest)->skipped());
  }
}

TEST(Lock, ByStreamAsksWhatItHasMissedWhenTheStreamHasEnded) {
  TestClient test({.wait_by = WaitBy::stream});
  test.transport->then(answer(200, kQueued));
  int streams = 0;
  test.transport->on_stream = [&](const Exchange&, const Transport::Bytes& bytes) {
    if (++streams == 1) {
      EXPECT_TRUE(bytes(": turnstile\n\n"));
      test.transport->then(answer(200, kSkipped));
    } else {
      EXPECT_FALSE(bytes("data: {\"event\":\"completed\"}\n\n"));
    }
    return answer(200, "");
  };
  EXPECT_TRUE(test.client->lock(kRequest)->skipped());
  EXPECT_EQ(streams, 1);
}

TEST(L7, AWaitersStreamThatIsSilentForTwoHeartbeatsIsGivenUp) {
  TestClient test({.wait_by = WaitBy::stream, .heartbeat = 3s});
  test.transport->then(answer(200, kQueued));
  test.transport->then(answer(200, kSkipped));
  test.transport->on_stream = [](const Exchange& exchange, const Transport::Bytes& bytes) {
    EXPECT_EQ(exchange.silence, 6s);  // which the transport looks after
    EXPECT_TRUE(bytes(": turnstile\n\n"));
    return silent();
  };
  EXPECT_TRUE(test.client->lock(kRequest)->skipped());
}

TEST(Lock, PollsTheStatusWhenAStreamDoesNotBegin) {
  TestClient test;
  int polls = 0;
  test.transport->otherwise = [&](const Exchange& exchange) {
    if (has(exchange.body, "wait_ms")) return answer(504, "");
    if (exchange.target.starts_with("/lock/status?")) {
      const bool turn = ++polls == 3;
      return answer(200, std::string(R"({"type":"pull","resource_id":"r","state":"held","acquired":)") +
                             (turn ? "true}" : R"(false,"position":1})"));
    }
    return answer(200, polls == 3 ? kAcquired : kQueued);
  };
  test.transport->on_stream = [](const Exchange& exchange, const Transport::Bytes&) {
    EXPECT_EQ(exchange.first_byte, 2s);
    return silent();
  };
  auto result = test.client->lock(kRequest);
  ASSERT_TRUE(result && result->acquired());
  EXPECT_EQ(polls, 3);
  test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
}

TEST(Lock, AcquiredByALongPollThatWasSentLongAgoIsRenewedBeforeItIsHandedOver) {
  TestClient test;
  test.transport->then(answer(200, kQueued));
  test.transport->script.push_back([&](const Exchange&) {
    test.timing->advance(25s);
    return answer(200, kAcquired);
  });
  test.transport->then(answer(200, kRenewed));
  auto result = test.client->lock(kRequest);
  ASSERT_TRUE(result && result->acquired());
  EXPECT_EQ(test.transport->seen.back().target, "/renew");
  EXPECT_EQ(result->hold.state(), HoldState::held);
  EXPECT_EQ(result->hold.believed_until(), test.timing->now() + 9s);
  test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
}

// The way there and back takes longer than the lease: that will not change.
TEST(Lock, WhoseLeaseIsAlwaysOverBeforeTheAnswerIsHereSaysSo) {
  TestClient test;
  test.transport->otherwise = [&](const Exchange& exchange) {
    test.timing->advance(600ms);
    return exchange.target == "/lock" ? answer(200, kAcquired) : answer(403, refusal("not_held"));
  };
  LockRequest request = kRequest;
  request.lease = 500ms;
  const auto result = test.client->lock(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::lost);
  EXPECT_NE(result.error().message.find("500 ms"), std::string::npos) << result.error().message;
}

TEST(Requests, ThatNoServerWouldTakeAreRefusedHereAndCostOthersNothing) {
  TestClient test;
  LockRequest faulty = kRequest;
  faulty.lease = -1s;
  EXPECT_EQ(test.client->lock(faulty).error().code, ErrorCode::invalid);
  EXPECT_EQ(test.client->try_lock(faulty).error().code, ErrorCode::invalid);
  LockRequest odd = kRequest;
  odd.resource = "\xff";
  test.transport->otherwise = [](const Exchange&) {
    return answer(200, std::string(R"({"answers":[{"status":200,)") + (kSkipped + 1) + "]}");
  };
  const auto locked = test.client->try_lock_all({odd, kRequest});
  ASSERT_TRUE(locked && locked->size() == 2);
  EXPECT_EQ((*locked)[0].error().code, ErrorCode::invalid);
  EXPECT_TRUE((*locked)[1] && (*locked)[1]->skipped());
  test.transport->otherwise = [](const Exchange&) {
    return answer(200, R"({"answers":[{"status":200,"resource_id":"r","count":1,"nodes":["me"]}]})");
  };
  const auto added = test.client->add_references({"r", "\xff"});
  ASSERT_TRUE(added && added->size() == 2);
  EXPECT_TRUE((*added)[0]);
  EXPECT_EQ((*added)[1].error().code, ErrorCode::invalid);
}

// Each batch would wait for all time-outs of all retries again.
TEST(Requests, OfManyTheRestIsNotSentWhenNoServerHasAnswered) {
  TestClient test;
  test.transport->otherwise = [](const Exchange&) { return silent(); };
  const std::vector<std::string> names(2'500, "r");
  EXPECT_EQ(test.client->add_references(names).error().code, ErrorCode::unavailable);
  EXPECT_EQ(test.transport->count, 6u) << "one batch, and its retries";
  std::string answers = R"({"answers":[)";
  for (int i = 0; i < 1'000; ++i)
    answers += std::string(i > 0 ? "," : "") + R"({"status":200,"resource_id":"r","count":1,"nodes":["me"]})";
  test.transport->then(answer(200, answers + "]}"));
  const auto added = test.client->add_references(names);
  ASSERT_TRUE(added && added->size() == names.size());
  EXPECT_TRUE((*added)[999]);
  EXPECT_EQ((*added)[1'000].error().code, ErrorCode::unavailable);
  EXPECT_EQ((*added)[2'499].error().message, (*added)[1'000].error().message);
  EXPECT_EQ(test.transport->count, 13u);
}

TEST(TryLock, OfManyAsksNoMoreWhenNoServerHasAnswered) {
  TestClient test({.max_retries = 0});
  test.transport->then(silent());
  EXPECT_EQ(test.client->try_lock_all(std::vector(2'500, kRequest)).error().code, ErrorCode::unavailable);
  for (size_t i = 1; i < test.transport->seen.size(); ++i)  // what may have been granted is given back
    EXPECT_TRUE(has(test.transport->seen[i].body, R"("call":"cancel")")) << i;
}

TEST(Lock, TellsWhereItStandsAtMostOnceASecond) {
  TestClient test;
  std::vector<WaitingStatus> told;
  LockRequest request = kRequest;
  request.on_waiting = [&](const WaitingStatus& status) { told.push_back(status); };
  int asked = 0;
  test.transport->otherwise = [&](const Exchange&) {
    test.timing->advance(300ms);
    const std::string body = R"({"state":"queued","position":)" + std::to_string(100 - ++asked) + "}";
    return asked < 20 ? answer(200, body) : answer(200, kSkipped);
  };
  ASSERT_TRUE(test.client->lock(request)->skipped());
  EXPECT_GE(told.size(), 4u);
  EXPECT_LE(told.size(), 6u);
}

TEST(TryLock, ThatIsStoppedLeavesNothingBehind) {
  TestClient test;
  std::stop_source stop;
  test.transport->script.push_back([&](const Exchange&) {
    stop.request_stop();
    return stopped();
  });
  test.transport->then(answer(200, R"({"cancelled":false})"));
  test.transport->then(answer(200, kReleased));
  EXPECT_EQ(test.client->try_lock(kRequest, kForEver, stop.get_token()).error().code, ErrorCode::cancelled);
  ASSERT_EQ(test.transport->seen.size(), 3u);
  EXPECT_EQ(test.transport->seen[1].target, "/cancel");
  EXPECT_EQ(test.transport->seen[2].target, "/unlock");
}

TEST(TryLock, WhoseAnswerWasLostLeavesNothingBehind) {
  TestClient test({.max_retries = 0});
  test.transport->then(silent());
  test.transport->then(answer(200, R"({"cancelled":false})"));
  test.transport->then(answer(200, kReleased));
  EXPECT_EQ(test.client->try_lock(kRequest).error().code, ErrorCode::unavailable);
  ASSERT_EQ(test.transport->seen.size(), 3u);
  EXPECT_EQ(test.transport->seen[2].target, "/unlock");
}

TEST(TryLock, OfManyWhoseAnswersWereLostLeavesNothingBehind) {
  TestClient test({.max_retries = 0});
  test.transport->then(silent());
  EXPECT_EQ(test.client->try_lock_all({kRequest, kRequest}).error().code, ErrorCode::unavailable);
  ASSERT_EQ(test.transport->seen.size(), 2u);
  const std::string& last = test.transport->seen.back().body;
  for (const char* call : {R"("call":"cancel")", R"("call":"unlock")"})
    EXPECT_NE(last.find(call), std::string::npos) << last;
}

TEST(TryLock, ThatReachedNobodyHasNothingToLeave) {
  TestClient test({.max_retries = 0});
  EXPECT_EQ(test.client->try_lock(kRequest).error().code, ErrorCode::unavailable);
  EXPECT_EQ(test.transport->seen.size(), 1u);
}

TEST(TryLock, GivesItsPlaceUpWhenItIsBusyUnlessToldToStay) {
  TestClient test;
  test.transport->then(answer(200, kQueued));
  test.transport->then(answer(200, kCancelled));
  const auto busy = test.client->try_lock(kRequest);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::busy);
  EXPECT_EQ(test.transport->seen.back().target, "/cancel");
  test.transport->then(answer(200, kQueued));
  LockRequest staying = kRequest;
  staying.stay_when_busy = true;
  const auto queued = test.client->try_lock(staying);
  ASSERT_TRUE(queued && queued->queued());
  EXPECT_EQ(queued->waiting->position, 2u);
  EXPECT_EQ(test.transport->seen.size(), 3u);
}

}  // namespace
}  // namespace turnstile::client
