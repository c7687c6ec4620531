// Limits and time-outs over real sockets. The tests wait for what must happen; nothing here depends on how
// soon it does.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "http/test_client.h"

namespace turnstile::http {
namespace {

constexpr Duration kShort = std::chrono::milliseconds(30);

// Whether a test has done its steps so quickly one after the other that a time-out of `most` means what it
// says. A machine that stands still for as long says nothing, and the test begins anew.
class Steps {
 public:
  explicit Steps(Duration most) : most_(most) {}
  bool step() {
    const auto now = std::chrono::steady_clock::now();
    const bool quick = now - last_ < most_ / 2;
    last_ = now;
    return quick;
  }
  bool last(Duration time) const { return last_ - begin_ >= time; }

 private:
  Duration most_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = begin_;
};

TEST(Limits, L17_ASlowHeadIsCutOff) {
  Limits limits;
  limits.header_timeout = kShort;
  TestServer server(limits);
  Client silent(server.address()), slow(server.address());
  slow.send("GET /echo HTTP/1.1\r\nX-");
  const auto second = server.connect_with(get("/echo") + "GET /e");
  EXPECT_EQ(second->receive()->status, 200u);
  for (Client* client : {&silent, &slow, second.get()}) {
    const auto answer = client->receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 408u);
    EXPECT_EQ(answer->body, R"({"status":408,"error":"The request head took too long: send it again."})");
    EXPECT_TRUE(client->is_at_end());
  }
}

TEST(Limits, L17_ASlowHeadIsCutOffAlthoughItKeepsDripping) {
  Limits limits;
  limits.header_timeout = kShort;
  limits.max_head = 8 * 1024 * 1024;  // so that it is not the size that ends it
  TestServer server(limits);
  Client client(server.address());
  client.send("GET /echo HTTP/1.1\r\n");
  while (!client.has_input()) client.send("X: y\r\n");
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408u);
}

TEST(Limits, AConnectionMayBeClosedInTheTurnInWhichItsTimeIsOver) {
  Limits limits;
  limits.header_timeout = kShort;
  TestServer server(limits);
  const auto client = server.connect_with(get("/wait") + "GET /e");
  const ConnectionId id = server.await_waiting();
  std::promise<void> closed;
  server.on_loop([&](Loop& loop) {
    EXPECT_TRUE(loop.answer(id, Response()));  // behind it begins the time for the next head,
    loop.post([&] {
      std::this_thread::sleep_for(2 * kShort);  // which is over before the loop looks at its clock again
      loop.post([&] {
        loop.close(id);
        closed.set_value();
      });
    });
  });
  closed.get_future().wait();
  EXPECT_EQ(client->receive()->status, 200u);
  client->receive_all();  // nothing, or a 408 where the machine was slower than the time-out
}

TEST(Limits, L17_ASlowBodyIsCutOff) {
  Limits limits;
  limits.body_timeout = kShort;
  TestServer server(limits);
  Client plain(server.address()), chunked(server.address());
  plain.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nonly this");
  chunked.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nonl");
  for (Client* client : {&plain, &chunked}) {
    const auto answer = client->receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 408u);
    EXPECT_TRUE(client->is_at_end());
  }
}

TEST(Limits, L17_ABodyOf100MegabytesIsRefusedBeforeItIsRead) {
  TestServer server;
  Client client(server.address());
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 104857600\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 413u);
  const std::string megabyte(1024 * 1024, 'x');
  int sent = 0;
  while (sent < 100 && client.send(megabyte)) ++sent;
  EXPECT_LT(sent, 100) << "somebody has read all that";
  EXPECT_EQ(server.log().count("/echo"), 0u);
}

TEST(Limits, L17_AnEndlessChunkedBodyIsCutOff) {
  TestServer server;
  Client client(server.address());
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
  for (int sent = 0; sent < 100 && client.send(chunk) && !client.has_input(); ++sent) {
  }
  EXPECT_EQ(client.receive()->status, 413u);
}

TEST(Limits, ALargeHeadIsRefused) {
  TestServer server;
  Client client(server.address());
  client.send("GET /echo HTTP/1.1\r\nHost: h\r\nX: " + std::string(20'000, 'x'));
  EXPECT_EQ(client.receive()->status, 431u);
  EXPECT_TRUE(client.is_at_end());
}

TEST(Limits, OnlyTheBatchPathTakesLargeBodies) {
  TestServer server;
  Client client(server.address()), other(server.address());
  client.send(post("/batch", std::string(1024 * 1024, 'x')));
  EXPECT_EQ(client.receive()->status, 200u);
  other.send("POST /lock HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\n");
  EXPECT_EQ(other.receive()->status, 413u);
}

TEST(Limits, AnIdleConnectionIsClosedSilently) {
  Limits limits;
  limits.idle_timeout = kShort;
  TestServer server(limits);
  Client client(server.address());
  client.send(get("/echo"));
  EXPECT_EQ(client.receive()->status, 200u);
  EXPECT_TRUE(client.is_at_end());
}

TEST(Limits, AConnectionThatIsUsedIsNotIdle) {
  Limits limits;
  limits.idle_timeout = std::chrono::milliseconds(100);
  TestServer server(limits);
  std::optional<Client> client(std::in_place, server.address());
  for (Steps steps(limits.idle_timeout); !steps.last(3 * limits.idle_timeout);) {
    client->send(get("/echo"));
    const bool answered = client->receive().has_value();
    if (steps.step()) {
      ASSERT_TRUE(answered);
    } else {
      client.emplace(server.address());
      steps = Steps(limits.idle_timeout);
    }
  }
}

TEST(Limits, AReaderThatTakesNothingIsCutOff) {
  Limits limits;
  limits.write_timeout = kShort;
  TestServer server(limits);
  Client client(server.address(), 4096);
  client.send(get("/watch") + get("/large?30000000"));
  EXPECT_TRUE(server.log().await_line("closed"));
  EXPECT_LT(client.receive_all().size(), 30'000'000u);
}

// A thin link: the kernel tells of room only when a good part of its buffer is free, which takes longer than
// a reader may take for nothing.
TEST(Limits, AReaderThatTakesALittleAllTheTimeIsNotCutOff) {
  Limits limits;
  limits.write_timeout = std::chrono::milliseconds(100);
  TestServer server(limits);
  std::optional<Client> client;
  const auto begin = [&] {
    client.emplace(server.address(), 4096);
    client->send(get("/large?30000000"));
    return Steps(limits.write_timeout);
  };
  for (Steps steps = begin(); !steps.last(5 * limits.write_timeout);) {
    const bool open = client->take(1024);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // which is what makes the link thin
    if (steps.step()) {
      ASSERT_TRUE(open);
    } else {
      steps = begin();
    }
  }
}

TEST(Limits, AReaderThatHasTakenEverythingMayTakeItsTime) {
  Limits limits;
  limits.write_timeout = kShort;
  TestServer server(limits);
  std::optional<Client> client;
  do {  // a machine that stands still makes a slow reader of it
    client.emplace(server.address(), 4096);
    client->send(get("/large?10000000"));
  } while (!client->receive());
  client->send(get("/wait?200"));  // many write time-outs later
  const auto answer = client->receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "time is over");
}

TEST(Limits, OfAPipelineNoMoreIsAnsweredThanItsReaderTakes) {
  TestServer server;
  Client client(server.address(), 4096), other(server.address());
  std::string all;  // few enough bytes to be read at once
  for (int i = 0; i < 80; ++i) all += get("/large?1000000");
  client.send(all);
  ASSERT_TRUE(server.log().await_line("/large"));
  other.send(get("/echo"));
  EXPECT_TRUE(other.receive());  // the one loop has done what it could for the first
  EXPECT_LT(server.log().count("/large"), 20u);
}

TEST(Limits, ConnectionsBeyondTheLimitAreToldToComeBackLater) {
  Limits limits;
  limits.max_connections = 2;
  TestServer server(limits, 2);
  std::optional<Client> first(std::in_place, server.address());
  Client second(server.address());
  for (Client* client : {&*first, &second}) {
    client->send(get("/echo"));
    EXPECT_EQ(client->receive()->status, 200u);
  }
  Client third(server.address());
  const auto refused = third.receive();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429u);
  EXPECT_NE(refused->head.find("Retry-After: 1\r\n"), std::string::npos) << refused->head;
  EXPECT_TRUE(refused->body.starts_with("{\"status\":429")) << refused->body;
  EXPECT_TRUE(third.is_at_end());
  EXPECT_EQ(server.server().statistics().refused.load(), 1u);
  // When one has gone there is room again.
  first.reset();
  bool served = false;
  for (int i = 0; i < 10'000 && !served; ++i) {
    Client next(server.address());
    next.send(get("/echo"));
    const auto answer = next.receive();
    served = answer && answer->status == 200;
  }
  EXPECT_TRUE(served);
}

// Without it 1 MiB a connection, whoever it is: sixty gigabytes.
TEST(Limits, UnfinishedRequestsTakeBoundedMemoryInAllAndFinishedOnesNone) {
  Limits limits;
  limits.large_body_path = "/echo";
  limits.max_loop_input = 3 * 1024 * 1024;
  TestServer server(limits);
  const std::string whole = post("/echo", std::string(limits.max_batch_body, 'x'));
  // One behind the other, each kept open: what was answered takes nothing any more.
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<Client>(server.address()));
    clients.back()->send(whole);
    const auto answer = clients.back()->receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200u);
  }
  // At the same time, each without its last byte: some are told to come again.
  const std::string_view unfinished = std::string_view(whole).substr(0, whole.size() - 1);
  std::vector<std::jthread> senders;  // the refused one is not read any further
  for (const auto& client : clients)
    senders.emplace_back([&client, unfinished] { client->send(unfinished); });
  const auto refused = [&] {
    return std::ranges::count_if(clients, [](const auto& client) { return client->has_input(); });
  };
  while (refused() < 5) std::this_thread::yield();
  senders.clear();
  size_t finished = 0, told = 0;
  for (const auto& client : clients) {
    if (!client->has_input()) client->send("x");
    const auto answer = client->receive();
    finished += answer && answer->status == 200;
    told += answer && answer->status == 429 && answer->head.find("Retry-After: 1") != std::string::npos;
  }
  EXPECT_LE(finished, 3u);
  EXPECT_GE(finished, 1u);
  EXPECT_EQ(finished + told, clients.size());
  clients.clear();
  Client later(server.address());
  later.send(whole);
  EXPECT_EQ(later.receive()->status, 200u) << "what has gone takes nothing";
}

}  // namespace
}  // namespace turnstile::http
