// A hold in time: renewed, in danger, lost; and released, once.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <future>

#include "client/test_transport.h"
#include "turnstile/with_lock.h"

namespace turnstile::client {
namespace {

using namespace std::chrono_literals;

struct HoldTest : testing::Test {
  HoldTest() {
    test.transport->then(answer(200, kAcquired));
    hold = take();
  }
  ~HoldTest() override {
    test.transport->script.clear();
    test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
  }
  Hold take(Milliseconds lease = 10s) {
    auto result = test.client->lock({.operation = "pull", .resource = "r", .lease = lease});
    EXPECT_TRUE(result && result->acquired());
    return std::move(result->hold);
  }
  size_t calls() const { return test.transport->seen.size(); }
  const TestTransport::Seen& last() const { return test.transport->seen.back(); }
  Steady::time_point step() { return test.core->keeper().step(); }

  TestClient test;
  Hold hold;
};
using Keeping = HoldTest;
using D5 = HoldTest;
using D7 = HoldTest;

TEST_F(Keeping, RenewsAfterAThirdOfTheLeaseAndNotBefore) {
  test.timing->advance(3332ms);
  const auto next = step();
  EXPECT_EQ(calls(), 1u);
  EXPECT_LE(next - test.timing->now(), 1ms);
  test.timing->advance(1ms);
  test.transport->then(answer(200, kRenewed));
  step();
  ASSERT_EQ(calls(), 2u);
  EXPECT_EQ(last().target, "/renew");
  EXPECT_EQ(hold.believed_until(), test.timing->now() + 9s);
}

TEST_F(Keeping, BelievesFromWhenTheRenewalWasSentNotFromWhenItWasAnswered) {
  test.timing->advance(4s);
  const auto sent = test.timing->now();
  test.transport->script.push_back([&](const Exchange&) {
    test.timing->advance(800ms);
    return answer(200, kRenewed);
  });
  step();
  EXPECT_EQ(hold.believed_until(), sent + 9s);
}

TEST_F(Keeping, TellsOnceOfEachChangeFromHeldToDangerToHeldToDangerToLost) {
  std::vector<HoldState> told;
  hold.on_change([&](HoldState state) { told.push_back(state); });
  test.timing->advance(5s);
  step();
  step();
  EXPECT_EQ(told, (std::vector{HoldState::in_danger}));
  test.transport->then(answer(200, kRenewed));
  test.timing->advance(1s);
  step();
  EXPECT_EQ(told, (std::vector{HoldState::in_danger, HoldState::held}));
  test.timing->advance(5s);
  step();
  test.timing->advance(4s);
  step();
  step();
  EXPECT_EQ(told,
            (std::vector{HoldState::in_danger, HoldState::held, HoldState::in_danger, HoldState::lost}));
  EXPECT_EQ(hold.state(), HoldState::lost);
}

TEST_F(Keeping, IsLostWhenTheServerSaysSo) {
  for (const char* code : {"not_held", "not_holder", "stale_token"}) {
    test.transport->then(answer(200, kAcquired));
    Hold other = take();
    test.transport->then(answer(403, refusal(code)));
    EXPECT_EQ(other.renew().error().code, ErrorCode::lost);
    EXPECT_EQ(other.state(), HoldState::lost);
    test.transport->then(answer(403, refusal(code)));
  }
}

TEST_F(Keeping, AHangingServerDoesNotHideTheDanger) {
  test.timing->advance(3400ms);
  test.transport->then(silent());
  step();
  EXPECT_EQ(last().timeout, 1600ms);  // up to the moment at which the owner must be told
}

TEST_F(Keeping, RenewsSeveralInOneRoundTrip) {
  test.transport->then(answer(200, kAcquired));
  Hold second = take();
  test.timing->advance(4s);
  test.transport->then(answer(200, R"({"answers":[{"status":200,"renewed":true,"lease_ms":10000},)"
                                   R"({"status":403,"error":"gone","code":"not_held"}]})"));
  step();
  EXPECT_EQ(calls(), 3u);
  EXPECT_EQ(last().target, "/batch");
  EXPECT_NE(hold.state() == HoldState::lost, second.state() == HoldState::lost);
}

TEST_F(Keeping, SendsProgressAtMostOnceASecond) {
  hold.report_progress(1, 10);
  hold.report_progress(2, 10);
  step();
  EXPECT_EQ(calls(), 1u);
  test.timing->advance(1s);
  test.transport->then(answer(200, kRenewed));
  step();
  EXPECT_NE(last().body.find(R"("done":2,"total":10)"), std::string::npos);
  step();
  EXPECT_EQ(calls(), 2u);
}

TEST_F(Keeping, SendsProgressAtMostOnceASecondHoweverOftenAShortLeaseIsRenewed) {
  hold.detach();
  test.transport->then(answer(200, kAcquired));
  Hold brief = take(1500ms);
  const auto start = test.timing->now();
  std::vector<Milliseconds> sent;
  test.transport->otherwise = [&](const Exchange& exchange) {
    if (exchange.body.find("\"done\"") != std::string::npos)
      sent.push_back(std::chrono::duration_cast<Milliseconds>(test.timing->now() - start));
    return answer(200, R"({"renewed":true,"lease_ms":1500})");
  };
  for (uint64_t i = 0; i < 400; ++i) {
    brief.report_progress(i, 400);
    test.timing->advance(10ms);
    step();
  }
  EXPECT_EQ(sent, (std::vector<Milliseconds>{1000ms, 2000ms, 3000ms, 4000ms}));
  EXPECT_GT(calls(), 2 + sent.size()) << "renewals in between";
  test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
}

TEST_F(Keeping, NoRateOfProgressDisturbsARenewalInFlight) {
  test.timing->advance(4s);
  bool stopped = false;
  test.transport->script.push_back([&](const Exchange& exchange) {
    for (uint64_t i = 0; i < 1'000; ++i) hold.report_progress(i, 1'000);
    stopped = exchange.stop.stop_requested();
    return answer(200, kRenewed);
  });
  step();
  EXPECT_FALSE(stopped);
  EXPECT_EQ(hold.believed_until(), test.timing->now() + 9s);
  // The last of them travels a second later.
  test.timing->advance(1s);
  test.transport->then(answer(200, kRenewed));
  step();
  EXPECT_NE(last().body.find(R"("done":999,"total":1000)"), std::string::npos);
}

TEST_F(Keeping, NewHoldsOfTheSameLeaseDoNotDisturbARenewalInFlight) {
  test.timing->advance(4s);
  std::vector<Hold> more;
  bool stopped = false;
  test.transport->script.push_back([&](const Exchange& exchange) {
    for (int i = 0; i < 10; ++i) {
      test.transport->then(answer(200, kAcquired));
      more.push_back(take());
    }
    stopped = exchange.stop.stop_requested();
    return answer(200, kRenewed);
  });
  step();
  EXPECT_FALSE(stopped);
  test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
}

// Its owner is told in time, and yet a stream of such holds lets every second try pass.
TEST_F(Keeping, ANewHoldOfAShorterLeaseInterruptsARenewalInFlightButNotTheNextOne) {
  test.timing->advance(4s);
  std::vector<Hold> more;
  std::vector<bool> stopped_in_turn;
  const auto renewal = [&](const Exchange& exchange) {
    test.transport->script.push_front([](const Exchange&) { return answer(200, kAcquired); });
    more.push_back(take(1s));
    stopped_in_turn.push_back(exchange.stop.stop_requested());
    more.clear();
    return stopped_in_turn.back() ? stopped() : answer(200, kRenewed);
  };
  test.transport->otherwise = [&](const Exchange& exchange) {
    return exchange.target == "/unlock" ? answer(200, kReleased) : renewal(exchange);
  };
  step();
  EXPECT_EQ(step(), test.timing->now() + 3333ms) << "at once again, and then the next one";
  EXPECT_EQ(stopped_in_turn, (std::vector{true, false}));
  test.transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
}

// Whoever reports progress while the hold is let go may add it late.
TEST_F(Keeping, AHoldThatIsGoneDoesNotTakeThePlaceOfOneAtTheSameAddress) {
  const auto caller = std::make_shared<Caller>(ClientSettings{}, test.transport, test.timing);
  const auto keeper = std::make_shared<Keeper>(caller, false);
  Hold::State::Granted granted;
  granted.lease = 10s;
  granted.sent_at = test.timing->now();
  alignas(Hold::State) std::byte place[sizeof(Hold::State)];
  const auto make = [&] {
    return std::shared_ptr<Hold::State>(new (place) Hold::State(granted, caller, keeper),
                                        [](Hold::State* state) { state->~State(); });
  };
  auto gone = make();
  gone->detach();
  keeper->add(gone);
  gone.reset();
  const auto next = make();
  keeper->add(next);
  test.timing->advance(4s);
  test.transport->then(answer(200, kRenewed));
  keeper->step();
  EXPECT_EQ(last().target, "/renew");
}

TEST_F(Keeping, AHoldWithoutALeaseIsBelievedUntilItIsReleased) {
  test.transport->then(answer(200, kAcquired));
  Hold endless = take(0ms);
  EXPECT_EQ(endless.believed_until(), Steady::time_point::max());
  test.timing->advance(100h);
  EXPECT_EQ(endless.state(), HoldState::held);
  test.transport->then(answer(200, kReleased));
}

TEST_F(D5, ReleasingTwiceSendsOneUnlockAndSaysTheSame) {
  test.transport->then(answer(200, R"({"released":true,"next":"b","waiters":["b"]})"));
  EXPECT_EQ(hold.release(WorkResult::succeeded())->next, "b");
  EXPECT_EQ(hold.release(WorkResult::failed("late"))->next, "b");
  EXPECT_EQ(hold.state(), HoldState::released);
  hold = Hold();
  EXPECT_EQ(calls(), 2u);
}

TEST_F(D5, DestroyedUnreleasedItIsReleasedAsAFailureWithOneRetry) {
  hold = Hold();
  EXPECT_EQ(calls(), 3u);
  EXPECT_EQ(last().target, "/unlock");
  EXPECT_NE(last().body.find(R"("success":false,"error":"abandoned by its holder")"), std::string::npos);
}

TEST_F(D7, ALostAnswerAndARetryThatFindsNothingCountAsReleased) {
  test.transport->then(broken());
  test.transport->then(answer(403, refusal("not_held")));
  const auto released = hold.release(WorkResult::succeeded());
  ASSERT_TRUE(released);
  EXPECT_TRUE(released->already);
}

// The lease may have run out before the first try arrived; the second then finds the same as if it had not.
TEST_F(D7, ARetryThatFindsNothingDoesNotConfirmThatTheResultCounts) {
  for (const char* code : {"not_held", "not_holder", "stale_token"}) {
    test.transport->then(answer(200, kAcquired));
    Hold other = take();
    test.transport->then(broken());
    test.transport->then(answer(403, refusal(code)));
    const auto released = other.release(WorkResult::succeeded());
    ASSERT_TRUE(released);
    EXPECT_FALSE(released->confirmed) << code;
    EXPECT_FALSE(other.release(WorkResult::succeeded())->confirmed) << "what a second call is told";
  }
}

TEST_F(D7, AnAnswerOfTheServersConfirmsAlsoAfterALostOne) {
  test.transport->then(broken());
  test.transport->then(answer(200, R"({"released":true,"already":true,"waiters":[]})"));
  const auto released = hold.release(WorkResult::succeeded());
  ASSERT_TRUE(released);
  EXPECT_TRUE(released->already);
  EXPECT_TRUE(released->confirmed);
}

TEST_F(D7, WithoutALostAnswerAHoldThatIsGoneIsLost) {
  test.transport->then(unreachable());  // nothing was sent
  test.transport->then(answer(503, refusal("not_leader")));
  test.transport->then(answer(403, refusal("not_held")));
  EXPECT_EQ(hold.release(WorkResult::succeeded()).error().code, ErrorCode::lost);
}

TEST_F(D7, ASuccessWhoseAnswersWereAllLostIsNeverReportedAsAFailureLater) {
  test.transport->otherwise = [](const Exchange&) { return silent(); };
  EXPECT_EQ(hold.release(WorkResult::succeeded()).error().code, ErrorCode::unavailable);
  hold = Hold();  // "Close"
  EXPECT_NE(last().body.find(R"("success":true)"), std::string::npos);
}

TEST_F(D7, ReleaseAllJudgesEachOfABatchTheSameWay) {
  test.transport->then(answer(200, kAcquired));
  std::vector<Hold> holds;
  holds.push_back(std::move(hold));
  holds.push_back(take());
  test.transport->then(broken());
  test.transport->then(answer(200,
                              R"({"answers":[{"status":200,"released":true,"already":true,"waiters":[]},)"
                              R"({"status":403,"error":"","code":"stale_token"}]})"));
  const auto released = test.client->release_all(holds, WorkResult::succeeded());
  ASSERT_TRUE(released);
  for (const auto& one : *released) EXPECT_TRUE(one && one->already);
  EXPECT_TRUE((*released)[0]->confirmed);
  EXPECT_FALSE((*released)[1]->confirmed);
}

// The server takes no such result (too long, no UTF-8): nothing is over yet.
TEST_F(D7, AResultThatIsRefusedLeavesTheHoldAsItWasForAnotherOne) {
  test.transport->then(answer(400, refusal("bad_request")));
  EXPECT_EQ(hold.release(WorkResult::succeeded(std::string(5'000, 'x'))).error().code, ErrorCode::invalid);
  EXPECT_EQ(hold.state(), HoldState::held);
  test.timing->advance(4s);
  test.transport->then(answer(200, kRenewed));
  step();
  EXPECT_EQ(last().target, "/renew");
  test.transport->then(answer(200, kReleased));
  EXPECT_TRUE(hold.release(WorkResult::succeeded("short")));
  EXPECT_NE(last().body.find(R"("result":"short")"), std::string::npos);
}

// It was refused then, too. If it was not, by a server with other limits, the next one finds no hold.
TEST_F(D7, AResultThatIsRefusedBehindALostAnswerIsReplacedByAnotherOneAndNeverLost) {
  for (const bool was_done : {false, true}) {
    test.transport->then(answer(200, kAcquired));
    Hold other = take();
    test.transport->then(broken());
    test.transport->then(answer(400, refusal("bad_request")));
    EXPECT_EQ(other.release(WorkResult::succeeded("first")).error().code, ErrorCode::invalid);
    EXPECT_EQ(other.state(), HoldState::held);
    test.transport->then(was_done ? answer(403, refusal("not_held")) : answer(200, kReleased));
    const auto released = other.release(WorkResult::succeeded("second"));
    ASSERT_TRUE(released);
    EXPECT_EQ(released->confirmed, !was_done);
    EXPECT_NE(last().body.find(R"("result":"second")"), std::string::npos);
  }
}

TEST(HoldOfNothing, IsAsOneThatWasReleasedAndSaysSo) {
  Hold none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.state(), HoldState::released);
  EXPECT_EQ(none.token(), 0u);
  EXPECT_TRUE(none.resource().empty());
  EXPECT_LT(none.believed_until(), LeaseClock::now());
  EXPECT_EQ(none.renew().error().code, ErrorCode::invalid);
  EXPECT_EQ(none.release(WorkResult::succeeded()).error().code, ErrorCode::invalid);
  none.report_progress(1, 2);
  none.on_change([](HoldState) {});
  none.detach();
}

struct WithLock : testing::Test {
  Expected<WorkDone> run(const std::function<WorkResult(Hold&)>& work) {
    return with_lock(*test.client, {.operation = "once", .resource = "r"}, work);
  }
  TestClient test;
};

TEST_F(WithLock, ReleasesWithWhatTheWorkReturned) {
  test.transport->then(answer(200, kAcquired));
  test.transport->then(answer(200, kReleased));
  const auto done = run([](Hold& hold) {
    EXPECT_EQ(hold.token(), 7u);
    return WorkResult::succeeded("v7");
  });
  ASSERT_TRUE(done && done->here);
  EXPECT_NE(test.transport->seen.back().body.find(R"("success":true,"result":"v7")"), std::string::npos);
}

TEST_F(WithLock, WhoSkipsIsToldWhoDidItAndDoesNotWork) {
  test.transport->then(answer(200, R"({"state":"skipped","completed_by":"b","result":"v7"})"));
  const auto done = run([](Hold&) -> WorkResult { throw std::logic_error("it was called"); });
  ASSERT_TRUE(done && !done->here);
  EXPECT_EQ(done->by.node_id + done->by.result, "bv7");
}

TEST_F(WithLock, AResultThatTheServerDoesNotTakeCostsTheResultAndNotTheWork) {
  test.transport->then(answer(200, kAcquired));
  test.transport->then(answer(400, refusal("bad_request")));
  test.transport->then(answer(200, kReleased));
  const auto done = run([](Hold&) { return WorkResult::succeeded(std::string(5'000, 'x')); });
  ASSERT_TRUE(done && done->here);
  EXPECT_FALSE(done->released.result_kept);
  EXPECT_NE(test.transport->seen.back().body.find(R"("success":true})"), std::string::npos);
}

TEST_F(WithLock, AFailureThatCouldNotBeReportedSaysSo) {
  test.transport->then(answer(200, kAcquired));
  test.transport->then(answer(403, refusal("not_held")));
  test.transport->then(answer(403, refusal("not_held")));
  const auto done = run([](Hold&) { return WorkResult::failed("disk full"); });
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().message.starts_with("disk full (and that could not be reported: "))
      << done.error().message;
}

TEST_F(WithLock, AFailureAndAnExceptionAreToldToTheServerAndReturned) {
  for (const bool throws : {false, true}) {
    test.transport->then(answer(200, kAcquired));
    test.transport->then(answer(200, kReleased));
    const auto done = run([&](Hold&) {
      if (throws) throw std::runtime_error("disk full");
      return WorkResult::failed("disk full");
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::failed);
    EXPECT_EQ(done.error().message, "disk full");
    EXPECT_NE(test.transport->seen.back().body.find(R"("success":false,"error":"disk full")"),
              std::string::npos);
  }
}

TEST(Hooks, TellEveryTryAndWhyItIsRepeated) {
  std::vector<std::string> calls, lines;
  ClientSettings settings;
  settings.on_call = [&](const CallReport& report) {
    calls.push_back(fmt::format("{} {} {}", report.target, report.status, report.attempt));
  };
  settings.on_log = [&](const std::string& line) { lines.push_back(line); };
  TestClient test(settings);
  test.transport->then(unreachable());
  test.transport->then(answer(503, refusal("shutting_down")));
  test.transport->then(answer(200, R"({"type":"pull","resource_id":"r","state":"idle"})"));
  EXPECT_TRUE(test.client->status("pull", "r"));
  EXPECT_EQ(calls,
            (std::vector<std::string>{"/lock/status 0 1", "/lock/status 503 2", "/lock/status 200 3"}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("connection refused; trying again in "), std::string::npos);
}

struct Opening : testing::Test {
  Expected<Subscription> subscribe(Milliseconds within) {
    SubscribeRequest request;
    request.open_within = within;
    request.on_open = [this] { ++opened; };
    return client.subscribe(request, [](const Event&) {});
  }
  std::shared_ptr<TestTransport> transport = std::make_shared<TestTransport>();
  LockClient client{std::make_shared<LockClient::Core>(ClientSettings{}, transport)};
  std::atomic<int> opened = 0;
};

TEST_F(Opening, ASubscriptionThatIsToWaitReturnsWhenTheStreamIsOpen) {
  transport->on_stream = [&](const Exchange& exchange, const Transport::Bytes& bytes) {
    bytes(": turnstile\n\n");
    while (!exchange.stop.stop_requested()) std::this_thread::yield();
    return stopped();
  };
  EXPECT_TRUE(subscribe(60s));
  EXPECT_EQ(opened, 1);
}

TEST_F(Opening, AServerThatRefusesOrDoesNotAnswerIsAnError) {
  EXPECT_EQ(subscribe(50ms).error().code, ErrorCode::unavailable);
  transport->on_stream = [](const Exchange&, const Transport::Bytes&) {
    return answer(401, refusal("unauthorized"));
  };
  EXPECT_EQ(subscribe(60s).error().code, ErrorCode::unauthenticated);
  EXPECT_EQ(opened, 0);
}

TEST_F(Opening, AnEndThatThrowsEndsItsStreamAlone) {
  transport->on_stream = [](const Exchange&, const Transport::Bytes&) {
    return answer(401, refusal("unauthorized"));
  };
  std::promise<void> told;
  auto subscription = client.subscribe(
      {.operation = "pull"}, [](const Event&) {},
      [&](const ClientError&) {
        told.set_value();
        throw std::runtime_error("the caller's own");
      });
  ASSERT_TRUE(subscription);
  told.get_future().wait();
}

struct NoThreads : testing::Test {
  NoThreads() {
    transport->then(answer(200, kAcquired));
    transport->otherwise = [](const Exchange&) { return answer(200, kReleased); };
  }
  static std::thread none(const std::function<void()>&) {
    throw std::system_error(EAGAIN, std::generic_category());
  }
  void expect_released(const Expected<LockResult>& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::exhausted);
    ASSERT_EQ(transport->seen.size(), 2u);
    EXPECT_EQ(transport->seen[1].target, "/unlock");
    EXPECT_NE(transport->seen[1].body.find(R"("token":7,"success":false)"), std::string::npos);
  }
  std::shared_ptr<TestTransport> transport = std::make_shared<TestTransport>();
  LockClient client{std::make_shared<LockClient::Core>(
      ClientSettings{}, transport, CoreOptions{.timing = {}, .keeper_thread = true, .start_thread = none})};
};

TEST_F(NoThreads, AGrantWithALeaseIsReleasedAndAnError) {
  expect_released(client.lock({.operation = "pull", .resource = "r"}));
}

TEST_F(NoThreads, AGrantWithABondIsReleasedAndAnError) {
  expect_released(client.try_lock({.operation = "pull", .resource = "r", .lease = 0s, .monitor = true}));
}

TEST_F(NoThreads, ASubscriptionIsAnError) {
  EXPECT_EQ(client.subscribe({}, [](const Event&) {}).error().code, ErrorCode::exhausted);
}

TEST_F(NoThreads, AHoldWithoutALeaseGoesWithoutProgressAndCallbacks) {
  auto result = client.lock({.operation = "pull", .resource = "r", .lease = 0s});
  ASSERT_TRUE(result && result->acquired());
  result->hold.on_change([](HoldState) {});
  result->hold.report_progress(1, 2);
  EXPECT_TRUE(result->hold.release(WorkResult::succeeded()));
}

// A clock that can jump, as one does that goes on while the machine is suspended; waits go by the real one.
class JumpingTiming : public Timing {
 public:
  Steady::time_point now() const override { return Steady::now() + ahead_.load(); }
  bool sleep_until(Steady::time_point, std::stop_token) const override { return true; }
  void jump(Steady::duration by) { ahead_ = by; }

 private:
  std::atomic<Steady::duration> ahead_ = Steady::duration(0);
};

TEST(Suspended, AMachineThatWakesUpAfterItsLeaseTellsTheOwnerSoon) {
  auto timing = std::make_shared<JumpingTiming>();
  auto transport = std::make_shared<TestTransport>();
  auto core = std::make_shared<LockClient::Core>(ClientSettings{}, transport, CoreOptions{.timing = timing});
  LockClient client(core);
  transport->then(answer(200, kAcquired));
  auto result = client.lock({.operation = "pull", .resource = "r", .lease = 1h});
  ASSERT_TRUE(result && result->acquired());
  std::promise<HoldState> told;
  result->hold.on_change([&](HoldState state) { told.set_value(state); });
  timing->jump(2h);
  EXPECT_EQ(result->hold.state(), HoldState::lost);
  auto heard = told.get_future();
  ASSERT_EQ(heard.wait_for(60s), std::future_status::ready);  // without being woken, it would be 20 minutes
  EXPECT_EQ(heard.get(), HoldState::lost);
}

TEST(Suspended, TheClockOfLeasesIsTheOneThatGoesOnMeanwhile) {
  timespec before{}, after{};
  clock_gettime(CLOCK_BOOTTIME, &before);
  const auto now = LeaseClock::now().time_since_epoch();
  clock_gettime(CLOCK_BOOTTIME, &after);
  const auto at = [](const timespec& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  EXPECT_GE(now, at(before));
  EXPECT_LE(now, at(after));
}

}  // namespace
}  // namespace turnstile::client
