// Requests and answers over real sockets: order, waiting, closing.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "http/test_client.h"

namespace turnstile::http {
namespace {

TEST(Connection, GivesTheHandlerAllThatARequestHas) {
  TestServer server;
  Client client(server.address());
  client.send(
      "POST /echo?a=%20b HTTP/1.1\r\nHost: h:1\r\nOrigin: http://o\r\nAuthorization: Bearer t\r\n"
      "Last-Event-ID: 42\r\nContent-Length: 2\r\n\r\nhi");
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200u);
  EXPECT_EQ(answer->body, "POST /echo?a=%20b hi|h:1|http://o|Bearer t|42");
  EXPECT_TRUE(answer->head.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << answer->head;
  EXPECT_NE(answer->head.find(" GMT\r\nContent-Type: application/json\r\nContent-Length: "),
            std::string::npos);
  EXPECT_EQ(answer->head.find("Connection"), std::string::npos);
}

TEST(Connection, AnswersAPipelineInOrder) {
  TestServer server;
  Client client(server.address());
  std::string all;
  for (int i = 0; i < 500; ++i) all += post("/echo?" + std::to_string(i), std::string(size_t(i), 'b'));
  client.send(all);
  for (int i = 0; i < 500; ++i) {
    const auto answer = client.receive();
    ASSERT_TRUE(answer) << i;
    EXPECT_TRUE(answer->body.starts_with("POST /echo?" + std::to_string(i) + " ")) << answer->body;
  }
}

TEST(Connection, AnswersLargeAnswersOfAPipelineToASlowReaderCompletely) {
  TestServer server;
  Client client(server.address(), 4096);
  std::string all;
  for (int i = 0; i < 40; ++i) all += get("/large?300000");
  client.send(all);
  for (int i = 0; i < 40; ++i) {
    const auto answer = client.receive();
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->body.size(), 300'000u);
  }
}

TEST(Connection, TakesARequestByteByByte) {
  TestServer server;
  Client client(server.address());
  for (const char byte : post("/echo", "slow")) client.send({&byte, 1});
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "POST /echo? slow|test|||");
}

TEST(Connection, AWaitingRequestHoldsUpTheOnesBehindIt) {
  TestServer server;
  Client client(server.address());
  client.send(get("/echo?1") + get("/wait") + get("/echo?2") +
              "POST /echo?3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  EXPECT_TRUE(client.receive()->body.starts_with("GET /echo?1"));
  const ConnectionId waiting = server.await_waiting();
  client.send("2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(server.log().count("/echo"), 1u);
  server.on_loop([&](Loop& loop) {
    Response response;
    response.body = "at last";
    EXPECT_TRUE(loop.answer(waiting, response));
    EXPECT_FALSE(loop.answer(waiting, response)) << "answered twice";
  });
  EXPECT_EQ(client.receive()->body, "at last");
  EXPECT_TRUE(client.receive()->body.starts_with("GET /echo?2"));
  EXPECT_TRUE(client.receive()->body.starts_with("POST /echo?3 abcde"));
}

TEST(Connection, ATimerEndsALongPoll) {
  TestServer server;
  Client client(server.address());
  client.send(get("/wait?20") + get("/echo"));
  EXPECT_EQ(client.receive()->body, "time is over");
  EXPECT_EQ(client.receive()->status, 200u);
  EXPECT_EQ(server.log().count("timer"), 1u);
}

TEST(Connection, AWaitingRequestHasNoTimeOut) {
  Limits limits;
  limits.header_timeout = limits.body_timeout = limits.idle_timeout = std::chrono::milliseconds(20);
  TestServer server(limits);
  const auto client = server.connect_with(get("/wait?300"));  // many idle time-outs later
  EXPECT_EQ(client->receive()->body, "time is over");
  EXPECT_EQ(server.log().count("closed"), 0u);
}

TEST(Connection, TellsOnceThatTheClientOfAWaitingRequestHasGone) {
  TestServer server;
  for (int how = 0; how < 2; ++how) {
    std::optional<Client> client(std::in_place, server.address());
    client->send(get("/wait"));
    const ConnectionId waiting = server.await_waiting();
    how == 0 ? client.reset() : client->reset();
    EXPECT_TRUE(
        server.log().await([&](auto& log) { return std::ranges::count(log.lines, "closed") == how + 1; }));
    if (how == 1) {
      server.on_loop([&](Loop& loop) { EXPECT_FALSE(loop.answer(waiting, Response())); });
    }
  }
  EXPECT_EQ(server.log().count("closed"), 2u);
}

// They fill the buffer, so that the end behind them is never read.
TEST(Connection, TellsThatAClientHasGoneHoweverManyRequestsItHasSentBehindTheOneThatWaits) {
  TestServer server;
  Client client(server.address());
  std::string all = get("/wait");
  for (int i = 0; i < 1000; ++i) all += get("/echo");
  client.send(all);
  client.half_close();
  ASSERT_TRUE(server.log().await_line("closed"));
  EXPECT_TRUE(server.answer_waiting("late"));
  EXPECT_EQ(client.receive()->body, "late");
  EXPECT_EQ(server.log().count("/echo"), 0u) << "no call follows on_closed()";
}

TEST(Connection, AHalfClosedClientThatWaitsStillGetsItsAnswer) {
  TestServer server;
  Client client(server.address());
  client.send(get("/wait") + get("/echo"));
  client.half_close();
  ASSERT_TRUE(server.log().await_line("closed"));
  EXPECT_TRUE(server.answer_waiting("late"));
  EXPECT_EQ(client.receive()->body, "late");
  EXPECT_TRUE(client.is_at_end());
  EXPECT_EQ(server.log().count("/echo"), 0u) << "no call follows on_closed()";
}

TEST(Connection, AHalfClosedClientGetsAllItsAnswersAndThenTheEnd) {
  TestServer server;
  Client client(server.address());
  client.send(get("/echo?1") + get("/large?3000000") + get("/echo?2") + "GET /unfinis");
  client.half_close();
  EXPECT_EQ(client.receive()->status, 200u);
  EXPECT_EQ(client.receive()->body.size(), 3'000'000u);
  EXPECT_TRUE(client.receive()->body.starts_with("GET /echo?2"));
  EXPECT_TRUE(client.is_at_end());
  EXPECT_EQ(server.log().count("closed"), 0u) << "nobody asked";
}

TEST(Connection, AWatchedConnectionMayBeIdleAndItsEndIsTold) {
  Limits limits;
  limits.idle_timeout = std::chrono::milliseconds(20);
  TestServer server(limits);
  Client watched(server.address()), other(server.address());
  watched.send(get("/watch"));
  EXPECT_EQ(watched.receive()->status, 200u);
  other.send(get("/echo"));
  EXPECT_EQ(other.receive()->status, 200u);
  EXPECT_TRUE(other.is_at_end()) << "the other one is idle for too long";
  EXPECT_EQ(server.log().count("closed"), 0u);
  watched.send(get("/echo"));
  EXPECT_EQ(watched.receive()->status, 200u);
  watched.half_close();
  EXPECT_TRUE(server.log().await_line("closed"));
  EXPECT_TRUE(watched.is_at_end());
  EXPECT_EQ(server.log().count("closed"), 1u);
}

TEST(Connection, AWatchedConnectionThatIsClosedAfterItsAnswerIsToldToo) {
  TestServer server;
  Client client(server.address());
  client.send("GET /watch HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 200u);
  EXPECT_TRUE(client.is_at_end());
  EXPECT_TRUE(server.log().await_line("closed"));
}

TEST(Connection, HeadGetsTheSameHeadWithoutTheBody) {
  TestServer server;
  Client client(server.address());
  client.send("HEAD /large?1000 HTTP/1.1\r\nHost: h\r\n\r\n" + get("/echo"));
  const auto head = client.receive(false);
  EXPECT_NE(head->head.find("Content-Length: 1000\r\n"), std::string::npos) << head->head;
  EXPECT_EQ(client.receive()->body, "GET /echo? |test|||");
}

TEST(Connection, KeepsAliveAndClosesAsTheClientWishes) {
  TestServer server;
  const auto closes = [&](std::string_view request, std::string_view header) {
    Client client(server.address());
    client.send(request);
    const auto answer = client.receive();
    EXPECT_EQ(answer->status, 200u);
    if (!header.empty()) {
      EXPECT_NE(answer->head.find(header), std::string::npos) << answer->head;
    }
    client.send(get("/echo"));
    return !client.receive();
  };
  EXPECT_FALSE(closes("GET /echo HTTP/1.1\r\nHost: h\r\n\r\n", ""));
  EXPECT_TRUE(closes("GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "Connection: close\r\n"));
  EXPECT_TRUE(closes("GET /echo HTTP/1.0\r\n\r\n", "Connection: close\r\n"));
  EXPECT_FALSE(closes("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Connection: keep-alive\r\n"));
  EXPECT_TRUE(closes(get("/close"), "Connection: close\r\n"));
}

TEST(Connection, SaysContinueToAClientThatWaitsForIt) {
  TestServer server;
  Client client(server.address());
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 100u);
  client.send("body");
  EXPECT_EQ(client.receive()->body, "POST /echo? body|h|||");
}

TEST(Connection, AnswersBadFramingWithASentenceAndClosesAfterTheGoodOnes) {
  TestServer server;
  Client client(server.address());
  client.send(get("/echo") + "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + get("/echo"));
  EXPECT_EQ(client.receive()->status, 200u);
  const auto refused = client.receive();
  EXPECT_EQ(refused->status, 400u);
  EXPECT_EQ(refused->body, R"({"status":400,"error":"The request has more than one Host header."})");
  EXPECT_NE(refused->head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(client.is_at_end());
  EXPECT_EQ(server.log().count("/echo"), 1u);
}

TEST(Connection, AHandlerMayAnswerOthersAndItselfFromWithinHandle) {
  TestServer server;
  Client first(server.address()), second(server.address());
  first.send(get("/wait") + get("/self") + get("/echo"));
  const ConnectionId waiting = server.await_waiting();
  second.send(get("/wake?" + std::to_string(uint64_t(waiting))));
  EXPECT_EQ(second.receive()->status, 200u);
  EXPECT_EQ(first.receive()->body, "from within");
  EXPECT_EQ(first.receive()->body, "from within");
  EXPECT_TRUE(first.receive()->body.starts_with("GET /echo"));
}

TEST(Connection, AHandlerMayAnswerAndCloseSeveralInOneTurn) {
  TestServer server;
  Client first(server.address()), second(server.address());
  first.send(get("/wait"));
  const ConnectionId waiting = server.await_waiting();
  second.send(get("/wait"));
  const ConnectionId other = server.await_waiting();
  server.on_loop([&](Loop& loop) {
    Response response;
    response.body = "one";
    EXPECT_TRUE(loop.answer(waiting, response));
    loop.close(waiting);
    response.body = "two";
    EXPECT_TRUE(loop.answer(other, response));
    EXPECT_FALSE(loop.answer(ConnectionId::none, response));
  });
  EXPECT_EQ(first.receive()->body, "one");
  EXPECT_TRUE(first.is_at_end());
  EXPECT_EQ(second.receive()->body, "two");
  EXPECT_EQ(server.log().count("closed"), 0u) << "the handler closed it itself";
}

TEST(Connection, ARequestIsAnsweredAlsoIfItsHandlerClosesFirst) {
  TestServer server;
  Client client(server.address());
  client.send(get("/leave") + get("/echo"));
  EXPECT_TRUE(client.receive()->body.starts_with("GET /leave"));
  EXPECT_TRUE(client.is_at_end());
  EXPECT_EQ(server.log().count("/echo"), 0u);
  EXPECT_EQ(server.log().count("closed"), 0u) << "the handler closed it itself";
}

TEST(Connection, L15_OthersGetTheirTurnWhileManyAnswersAreWritten) {
  constexpr size_t kWaiting = 300;
  TestServer server;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<ConnectionId> waiting;
  for (size_t i = 0; i < kWaiting; ++i) {
    clients.push_back(std::make_unique<Client>(server.address()));
    clients.back()->send(get("/wait"));
    waiting.push_back(server.await_waiting());
  }
  // The second task is due in the turn after the first one's: by then some have been written, and not all.
  size_t written_before = 1;
  const size_t written = server.log().count("written");
  std::promise<void> looked;
  server.on_loop([&](Loop& loop) {
    Response response;
    response.body = "go";
    for (const ConnectionId id : waiting) EXPECT_TRUE(loop.answer(id, response));
    loop.post([&] {
      written_before = server.log().count("written") - written;
      looked.set_value();
    });
  });
  looked.get_future().wait();
  EXPECT_EQ(written_before, 0u) << "on_written() follows when all have been written";
  for (const auto& client : clients) EXPECT_EQ(client->receive()->body, "go");
}

}  // namespace
}  // namespace turnstile::http
