// The gate: nothing is written before the handler lets it pass, and receipts tell when it has been.
#include <gtest/gtest.h>

#include <algorithm>

#include "http/test_client.h"

namespace turnstile::http {
namespace {

// After this, whatever the loop was going to write for requests that it has handled is written.
void settle(TestServer& server) {
  server.on_loop([](Loop&) {});
}

TEST(Gate, AnAnswerIsNotWrittenBeforeItMayLeave) {
  TestServer server;
  Client client(server.address());
  client.send(get("/gated?5"));
  ASSERT_TRUE(server.log().await_line("/gated"));
  settle(server);
  EXPECT_FALSE(client.has_input());
  server.open_gate(4);
  settle(server);
  EXPECT_FALSE(client.has_input());
  EXPECT_EQ(server.log().count("written"), 0u);
  server.open_gate(5);
  EXPECT_EQ(client.receive()->status, 200u);
  EXPECT_TRUE(server.log().await_line("written"));
  client.send(get("/gated?5"));
  EXPECT_EQ(client.receive()->status, 200u) << "it is open already";
}

TEST(Gate, TheAnswersOfAPipelineStayInOrderBehindTheHighestGate) {
  TestServer server;
  Client client(server.address());
  client.send(get("/echo?a") + get("/gated?7") + get("/echo?b") + get("/gated?3") + get("/echo?last"));
  ASSERT_TRUE(server.log().await([](auto& log) { return std::ranges::count(log.lines, "/echo") == 3; }));
  server.open_gate(6);
  settle(server);
  EXPECT_FALSE(client.has_input());
  server.open_gate(7);
  for (const char* query : {"?a ", "?7 ", "?b ", "?3 ", "?last "})
    EXPECT_NE(client.receive()->body.find(query), std::string::npos) << query;
}

TEST(Gate, MoreIsReadOnlyWhenItHasOpened) {
  TestServer server;
  Client client(server.address());
  client.send(get("/gated?1"));
  ASSERT_TRUE(server.log().await_line("/gated"));
  client.send(get("/echo"));
  Client other(server.address());  // a round trip of another connection, so that the loop has looked
  other.send(get("/close"));
  EXPECT_EQ(other.receive()->status, 200u);
  EXPECT_EQ(server.log().count("/echo"), 0u);
  server.open_gate(1);
  EXPECT_NE(client.receive()->body.find("/gated"), std::string::npos);
  EXPECT_NE(client.receive()->body.find("/echo"), std::string::npos);
}

TEST(Gate, LetsGoWhoeverIsDueWhateverTheOrderInWhichTheyCame) {
  TestServer server;
  std::vector<std::unique_ptr<Client>> clients;
  const std::vector<int> gates = {5, 2, 9, 2, 7, 1};
  for (size_t i = 0; i < gates.size(); ++i) {
    clients.push_back(std::make_unique<Client>(server.address()));
    clients.back()->send(get("/gated?" + std::to_string(gates[i])));
    ASSERT_TRUE(
        server.log().await([&](auto& log) { return std::ranges::count(log.lines, "/gated") == int(i) + 1; }));
  }
  for (const uint64_t sequence : {1u, 2u, 6u, 9u}) {
    server.open_gate(sequence);
    settle(server);
    for (size_t i = 0; i < gates.size(); ++i)
      EXPECT_EQ(clients[i]->has_input(), uint64_t(gates[i]) <= sequence) << gates[i] << " at " << sequence;
  }
}

TEST(Gate, AnAnswerGivenLaterIsGatedToo) {
  TestServer server;
  Client client(server.address());
  client.send(get("/wait") + get("/echo"));
  EXPECT_TRUE(server.answer_waiting("gated", 3));
  settle(server);
  EXPECT_FALSE(client.has_input());
  server.open_gate(3);
  EXPECT_EQ(client.receive()->body, "gated");
  EXPECT_EQ(client.receive()->status, 200u);
}

TEST(Gate, S43_AnAnswerThatMustNotLeaveIsReplacedAndOfSeveralNoneLeaves) {
  TestServer server;
  Client one(server.address()), several(server.address()), idle(server.address());
  one.send(get("/gated?5"));
  several.send(get("/gated?5") + get("/gated?6"));
  idle.send(get("/echo"));
  EXPECT_EQ(idle.receive()->status, 200u);
  ASSERT_TRUE(server.log().await([](auto& log) { return std::ranges::count(log.lines, "/gated") == 3; }));
  server.on_loop([](Loop& loop) {
    Response unknown;
    unknown.status = 503;
    unknown.body = "unknown";
    unknown.close = true;
    loop.replace_output(unknown);
  });
  const auto told = one.receive();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->status, 503u);
  EXPECT_EQ(told->body, "unknown");
  one.receive_all();
  EXPECT_TRUE(one.is_at_end());
  several.receive_all();
  EXPECT_TRUE(several.is_at_end()) << "what it would get could not be told apart";
  idle.send(get("/echo"));
  EXPECT_EQ(idle.receive()->status, 200u) << "who waits for nothing stays";
}

TEST(Gate, AStreamBeginsBehindItsGateAndKeepsItsOrder) {
  TestServer server;
  Client client(server.address());
  client.send(get("/stream?4"));
  const ConnectionId stream = server.await_stream();
  EXPECT_EQ(server.stream(stream, "data: 1\n\n"), Streamed::queued);
  settle(server);
  EXPECT_FALSE(client.has_input());
  server.open_gate(4);
  EXPECT_TRUE(client.receive_until("\r\n\r\n9\r\n: hello\n\n\r\n9\r\ndata: 1\n\n\r\n"));
}

TEST(Gate, AConnectionThatGoesWhileItIsHeldBackLeavesNothingBehind) {
  TestServer server;
  {
    Client client(server.address());
    client.send(get("/gated?1"));
    ASSERT_TRUE(server.log().await_line("/gated"));
    client.reset();
  }
  server.open_gate(1);
  Client other(server.address());
  other.send(get("/echo"));
  EXPECT_EQ(other.receive()->status, 200u);
}

TEST(Gate, WrittenIsToldAfterTheBytesAreWithTheKernel) {
  TestServer server;
  Client client(server.address());
  client.send(get("/echo"));
  ASSERT_TRUE(server.log().await_line("written"));
  EXPECT_TRUE(client.has_input());
  client.receive();
  client.send(get("/wait"));
  const size_t before = server.log().count("written");
  EXPECT_TRUE(server.answer_waiting("x"));
  ASSERT_TRUE(server.log().await(
      [&](auto& log) { return size_t(std::ranges::count(log.lines, "written")) == before + 1; }));
  EXPECT_TRUE(client.has_input());
}

TEST(Gate, AReceiptComesWithItsOwnAnswerWhateverElseIsWritten) {
  TestServer server;
  Client held(server.address()), other(server.address());
  held.send(get("/gated?1"));
  ASSERT_TRUE(server.log().await_line("/gated"));
  for (int i = 0; i < 3; ++i) {
    other.send(get("/echo"));
    EXPECT_EQ(other.receive()->status, 200u);
  }
  ASSERT_TRUE(server.log().await([](auto& log) { return std::ranges::count(log.lines, "written") == 3; }));
  settle(server);
  EXPECT_EQ(server.log().count("written"), 3u);
  server.open_gate(1);
  EXPECT_EQ(held.receive()->status, 200u);
  EXPECT_TRUE(server.log().await([](auto& log) { return std::ranges::count(log.lines, "written") == 4; }));
}

TEST(Gate, AReaderThatTakesNothingDoesNotKeepItsReceipt) {
  TestServer server;
  Client client(server.address(), 4096);
  client.send(get("/large?33554432"));
  EXPECT_TRUE(server.log().await_line("written"));
}

TEST(Gate, TheReceiptOfAConnectionThatBreaksComesAfterTheWordOfItsEnd) {
  TestServer server;
  Client client(server.address());
  client.send(get("/watch") + get("/gated?1"));
  ASSERT_TRUE(server.log().await_line("/gated"));
  client.reset();
  server.open_gate(1);
  ASSERT_TRUE(server.log().await([](auto& log) { return std::ranges::count(log.lines, "written") == 2; }));
  const std::lock_guard lock(server.log().mutex);
  const auto closed = std::ranges::find(server.log().lines, "closed");
  EXPECT_LT(closed, std::ranges::find(server.log().lines, "written"));
}

}  // namespace
}  // namespace turnstile::http
