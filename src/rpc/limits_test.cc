// Clients that take too little, send too much, or open too many: each is bounded, and the others are served.
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "rpc/message_reader.h"
#include "rpc/test_server.h"

namespace turnstile::rpc {
namespace {

using Texts = std::vector<std::string>;

TEST_F(ServerTest, AMethodWhoseClientTakesNothingWaitsWithABoundedAmount) {
  TestClient client(socket_, {.window = 1000, .grants = false});
  const int32_t flood = client.begin("/t/Flood");
  ASSERT_TRUE(events_.await("written", 2 << 20));
  // Other calls, there and elsewhere, go on.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.call("/t/EchoOnThread", "x").messages(), Texts{"x"});
  expect_served();
  EXPECT_LE(events_.count("written"), (2 << 20) + (128 << 10));
  EXPECT_EQ(client.answer(flood).bytes.size(), 1000u);
  client.reset(flood);
  client.await([&] { return client.answer(flood).ended; });
  EXPECT_TRUE(events_.await("flood ended"));
}

TEST_F(ServerTest, AClientThatDoesNotReadItsSocketKeepsNobodyElseWaiting) {
  TestClient client(socket_, {.window = 1 << 30});
  client.stop_reading();
  for (int i = 0; i < 4; ++i) client.begin("/t/Flood");
  ASSERT_TRUE(events_.await("written", 4 * (2 << 20)));
  for (int i = 0; i < 20; ++i) expect_served();
  EXPECT_LE(events_.count("written"), size_t(4 * (2 << 20) + (3 << 20)));
}

TEST_F(ServerTest, AClientMaySendAheadOfAMethodOnlySoMuch) {
  TestClient client(socket_);
  const int32_t call = client.begin("/t/Wait");
  const std::string message(100 << 10, 'm');
  for (int i = 0; i < 80; ++i) client.send(call, framed(message));
  client.end(call);
  ASSERT_TRUE(events_.await("waiting"));
  ASSERT_TRUE(client.await([&] { return client.room(call) == 0; }));
  EXPECT_EQ(client.call("/t/Echo", "x").messages(), Texts{"x"});  // all before it has been taken in
  EXPECT_GE(client.unsent(call), size_t(5 << 20));
  events_.add("open");
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), 0);
  EXPECT_EQ(events_.count("read"), 80 * message.size());
}

TEST_F(ServerTest, TheConnectionsWindowIsGivenBackForCallsThatWereRefused) {
  TestClient client(socket_);
  const std::string message(1 << 20, 'm');
  for (int i = 0; i < 40; ++i) EXPECT_EQ(client.call("/t/None", message).status(), int(Code::unimplemented));
  EXPECT_EQ(client.call("/t/Echo", message).status(), 0);
}

TEST_F(ServerTest, ACallThatHasAnsweredEarlyTakesNoMoreOfItsRequest) {
  TestClient client(socket_);
  const int32_t call = client.begin("/t/FailLate");
  client.send(call, framed("enough"));
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), int(Code::out_of_range));
  EXPECT_EQ(client.answer(call).reset, uint32_t(NGHTTP2_NO_ERROR));
}

class FewServerTest : public ServerTest {
 protected:
  FewServerTest() : ServerTest({.calls_of_connection = 4, .call_threads = 2, .connections = 3}) {}
};

TEST_F(FewServerTest, ACallForWhichThereIsNoThreadIsUnavailable) {
  TestClient client(socket_);
  for (int i = 0; i < 2; ++i) client.end(client.begin("/t/Wait"));
  ASSERT_TRUE(events_.await("waiting", 2));
  const Answer answer = client.call("/t/EchoOnThread", "x");
  EXPECT_EQ(answer.status(), int(Code::unavailable));
  EXPECT_EQ(client.call("/t/Echo", "x").status(), 0);  // it needs none
}

TEST_F(FewServerTest, MoreCallsThanAllowedAreRefusedBeforeTheClientKnowsTheLimit) {
  TestClient client(socket_, {.acknowledges = false});
  std::vector<int32_t> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(client.begin("/t/Echo"));
  ASSERT_TRUE(client.await([&] { return client.answer(calls[5]).ended; }));
  EXPECT_EQ(client.answer(calls[4]).reset, uint32_t(NGHTTP2_REFUSED_STREAM));
  EXPECT_EQ(client.answer(calls[5]).reset, uint32_t(NGHTTP2_REFUSED_STREAM));
  EXPECT_FALSE(client.answer(calls[0]).ended);
}

TEST_F(FewServerTest, MoreConnectionsThanAllowedAreClosedAtOnce) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TestClient>(socket_));
    ASSERT_EQ(clients.back()->call("/t/Echo", "x").status(), 0);
  }
  TestClient refused(socket_);
  EXPECT_FALSE(refused.await([] { return false; }));
  EXPECT_TRUE(refused.gone());
  clients.pop_back();
  const auto is_served = [&] {
    TestClient next(socket_);
    const int32_t call = next.begin("/t/Echo");
    next.send(call, framed("x"));
    next.end(call);
    return next.await_end(call);
  };
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  bool served = false;  // the server sees it go in its own time
  while (!served && std::chrono::steady_clock::now() < give_up) served = is_served();
  EXPECT_TRUE(served);
}

TEST_F(ServerTest, ALongTextOfAnErrorIsCut) {
  TestClient client(socket_);
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "ö";
  for (const char* path : {"/t/Fail", "/t/FailLate"}) {
    const Answer answer = client.call(path, text);
    EXPECT_GT(answer.status(), 0) << path;
    EXPECT_GE(answer.text().size(), 1000u) << path;
    EXPECT_LE(answer.text().size(), 4096u) << path;
    EXPECT_TRUE(answer.text().ends_with("%C3%B6...")) << path;  // no half of a letter
  }
}

TEST_F(ServerTest, SpacesAtTheEndsOfAnErrorsTextArePartOfIt) {
  TestClient client(socket_);
  EXPECT_EQ(client.call("/t/Fail", " a b ").text(), "%20a b%20");
}

TEST_F(ServerTest, AClientThatCancelsAllItsCallsKeepsItsConnection) {
  TestClient client(socket_);  // containerd does so: it cancels a Read when it has its bytes
  for (int i = 0; i < 3000; ++i) {
    const int32_t call = client.begin("/t/Echo");
    client.send(call, framed("x"));
    client.reset(call);
    if (i % 100 == 0) {
      ASSERT_EQ(client.call("/t/Echo", "x").status(), 0) << i;
    }
  }
  EXPECT_EQ(client.call("/t/Echo", "x").status(), 0);
  EXPECT_FALSE(client.was_told_to_go());
}

TEST_F(ServerTest, ARequestThatEndsInTheMiddleOfAMessageIsAnError) {
  TestClient client(socket_);
  for (const char* path : {"/t/Echo", "/t/EchoOnThread"}) {
    const int32_t call = client.begin(path);
    client.send(call, framed("message").substr(0, 8));
    client.end(call);
    ASSERT_TRUE(client.await_end(call));
    EXPECT_EQ(client.answer(call).status(), int(Code::internal)) << path;
  }
}

TEST_F(ServerTest, HeadersAreTakenUpToALimit) {
  TestClient client(socket_);
  const auto with = [&](size_t size) {
    const int32_t call = client.begin({{":method", "POST"},
                                       {":scheme", "http"},
                                       {":authority", "test"},
                                       {":path", "/t/Echo"},
                                       {"content-type", "application/grpc"},
                                       {"more", std::string(size, 'h')}});
    client.send(call, framed("x"));
    client.end(call);
    EXPECT_TRUE(client.await_end(call));
    return client.answer(call).status();
  };
  EXPECT_EQ(with(15'000), 0);
  EXPECT_EQ(with(60'000), int(Code::resource_exhausted));
  EXPECT_EQ(with(100), 0);
}

TEST_F(ServerTest, AStatusNeedsNoWindow) {
  const size_t size = framed("some").size();
  TestClient client(socket_, {.window = uint32_t(size), .grants = false});
  const int32_t call = client.begin("/t/SomeThenWait");
  client.end(call);
  ASSERT_TRUE(client.await([&] { return client.answer(call).messages() == Texts{"some"}; }));
  events_.add("open");
  ASSERT_TRUE(client.await_end(call));
  EXPECT_EQ(client.answer(call).status(), int(Code::out_of_range));
  EXPECT_EQ(client.answer(call).text(), "no more");
}

TEST_F(ServerTest, AClientThatProvokesAnswersAndReadsNoneIsCut) {
  TestClient client(socket_);
  client.stop_reading();
  // Calls above the limit are refused one by one as long as the client has not acknowledged the limit.
  for (int i = 0; i < 200'000 && !client.gone(); ++i) client.begin("/t/Echo");
  EXPECT_TRUE(client.await([&] { return client.gone(); }));
  expect_served();
}

TEST_F(ServerTest, OutOfDescriptorsItWaitsWithoutBurningTheProcessor) {
  TestClient served(socket_);
  ASSERT_EQ(served.call("/t/Echo", "x").status(), 0);
  // All descriptors up to the limit are taken, and one more for the client.
  UniqueFd first(::dup(0));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit little{rlim_t(first.get()) + 1, before.rlim_max};
  first.reset();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &little), 0);
  TestClient waiting(socket_);
  ASSERT_FALSE(waiting.gone());
  const auto cpu = [] {
    timespec used;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  // Nothing happens: that is what is tested. One that burns uses all that it gets, each time; what else may
  // cost something in this process (a page that comes from the disk, a sanitizer's housekeeping) does not.
  const auto used_in_a_while = [&] {
    const auto cpu_before = cpu();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return cpu() - cpu_before;
  };
  auto least = used_in_a_while();
  for (int i = 0; i < 9 && least >= std::chrono::milliseconds(20); ++i)
    least = std::min(least, used_in_a_while());
  EXPECT_EQ(served.call("/t/Echo", "x").status(), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(waiting.call("/t/Echo", "x").status(), 0);
  EXPECT_LT(least, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace turnstile::rpc
