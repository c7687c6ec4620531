// Streams: what they look like, how they end, and that a slow reader is cut off and harms nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "http/stream_queue.h"
#include "http/test_client.h"

namespace turnstile::http {
namespace {

// The content of a chunked answer, and whether its last chunk was there.
struct Content {
  std::string bytes;
  bool is_whole = false;
};

Content decode(const std::string& answer) {
  Content content;
  size_t at = answer.find("\r\n\r\n") + 4;
  while (at < answer.size()) {
    size_t digits = 0;
    const size_t size = std::stoul(answer.substr(at, 16), &digits, 16);
    EXPECT_EQ(answer.substr(at + digits, 2), "\r\n");
    at += digits + 2;
    content.bytes += answer.substr(at, size);
    at += std::min(size, answer.size() - at);
    if (at < answer.size()) {
      EXPECT_EQ(answer.substr(at, 2), "\r\n");
    }
    at += 2;
    if (size == 0) content.is_whole = at == answer.size();
  }
  return content;
}

std::string get_with_1_0(std::string_view path) { return "GET " + std::string(path) + " HTTP/1.0\r\n\r\n"; }

TEST(Stream, SendsHeadAndFirstBytesAtOnceAndThenWhatComes) {
  TestServer server;
  Client client(server.address());
  client.send(get("/stream"));
  EXPECT_TRUE(client.receive_until("Content-Type: text/event-stream\r\n"));
  EXPECT_TRUE(client.receive_until("Cache-Control: no-store\r\n"));
  EXPECT_TRUE(client.receive_until("X-Accel-Buffering: no\r\nConnection: close\r\n"));
  EXPECT_TRUE(client.receive_until("Transfer-Encoding: chunked\r\n\r\n9\r\n: hello\n\n\r\n"));
  const ConnectionId stream = server.await_stream();
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(server.stream(stream, "data: " + std::to_string(i) + "\n\n"), Streamed::queued);
  server.on_loop([&](Loop& loop) { loop.close(stream); });
  std::string expected;
  for (int i = 0; i < 200; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  const Content all = decode(client.receive_all());
  EXPECT_EQ(all.bytes, ": hello\n\n" + expected);
  EXPECT_TRUE(all.is_whole) << "an orderly end is told from a broken connection";
  EXPECT_EQ(server.stream(stream, "data: too late\n\n"), Streamed::gone);
  EXPECT_EQ(server.log().count("closed"), 0u) << "the handler closed it itself";
  EXPECT_EQ(server.server().statistics().streams_open.load(), 0u);
}

TEST(Stream, OneThatHasEndedTakesNothingMoreWhileItLingers) {
  TestServer server;
  Client client(server.address());
  client.send(get("/stream") + "what nobody reads");  // and for which the connection lingers
  const ConnectionId stream = server.await_stream();
  server.on_loop([&](Loop& loop) { loop.close(stream); });
  EXPECT_TRUE(decode(client.receive_all()).is_whole);
  EXPECT_EQ(server.stream(stream, "data: too late\n\n"), Streamed::gone);
}

TEST(Stream, ManyEventsOfOneTurnArriveCompleteAndInOrder) {
  TestServer server;
  Client client(server.address());
  client.send(get("/stream"));
  const ConnectionId stream = server.await_stream();
  server.on_loop([&](Loop& loop) {
    for (int i = 0; i < 1000; ++i)
      EXPECT_EQ(loop.stream(stream, std::make_shared<const std::string>("<" + std::to_string(i) + ">")),
                Streamed::queued);
  });
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += "<" + std::to_string(i) + ">";
  server.on_loop([&](Loop& loop) { loop.close(stream); });
  EXPECT_EQ(decode(client.receive_all()).bytes, ": hello\n\n" + expected);
}

TEST(Stream, IsNotChunkedForHttp10) {
  TestServer server;
  Client client(server.address());
  client.send(get_with_1_0("/stream"));
  const ConnectionId stream = server.await_stream();
  EXPECT_EQ(server.stream(stream, "data: 1\n\n"), Streamed::queued);
  server.on_loop([&](Loop& loop) { loop.close(stream); });
  const std::string all = client.receive_all();
  EXPECT_EQ(all.find("Transfer-Encoding"), all.npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\n: hello\n\ndata: 1\n\n")) << all;
}

TEST(Stream, EndsWithTheLastChunkWhenTheServerShutsDown) {
  TestServer server;
  Client client(server.address());
  client.send(get("/stream"));
  const ConnectionId stream = server.await_stream();
  EXPECT_EQ(server.stream(stream, "data: 1\n\n"), Streamed::queued);
  server.server().shutdown(std::chrono::seconds(30));
  const Content all = decode(client.receive_all());
  EXPECT_EQ(all.bytes, ": hello\n\ndata: 1\n\n");
  EXPECT_TRUE(all.is_whole);
}

TEST(Stream, EndsWhenTheClientHalfClosesOrGoes) {
  TestServer server;
  for (int how = 0; how < 2; ++how) {
    std::optional<Client> client(std::in_place, server.address());
    client->send(get("/stream") + "and some input that nobody wants");
    const ConnectionId stream = server.await_stream();
    how == 0 ? client->half_close() : client->reset();
    EXPECT_TRUE(
        server.log().await([&](auto& log) { return std::ranges::count(log.lines, "closed") == how + 1; }));
    EXPECT_EQ(server.stream(stream, "x"), Streamed::gone);
  }
  EXPECT_EQ(server.server().statistics().streams_open.load(), 0u);
}

// Sends to both until the one that does not read is full.
void fill(TestServer& server, ConnectionId full, ConnectionId other, Client& reader) {
  Streamed streamed = Streamed::queued;
  for (int i = 0; i < 1000 && streamed == Streamed::queued; ++i) {
    const std::string text = "data: " + std::to_string(i) + std::string(10'000, 'x') + "\n\n";
    streamed = server.stream(full, text);
    ASSERT_EQ(server.stream(other, text), Streamed::queued) << i;
    ASSERT_TRUE(reader.receive_until("data: " + std::to_string(i) + "x")) << i;
  }
  ASSERT_EQ(streamed, Streamed::full);
}

TEST(Stream, AReaderWhoseStreamIsFullIsCutOffWhileAnotherGetsEverything) {
  Limits limits;
  limits.write_timeout = std::chrono::hours(1);  // so that it is the full stream that ends it
  limits.full_stream_timeout = std::chrono::milliseconds(50);
  TestServer server(limits);
  Client slow(server.address(), 4096), good(server.address());
  slow.send(get("/stream"));
  const ConnectionId slow_stream = server.await_stream();
  good.send(get("/stream"));
  const ConnectionId good_stream = server.await_stream();
  EXPECT_TRUE(good.receive_until(": hello\n\n"));
  fill(server, slow_stream, good_stream, good);
  EXPECT_TRUE(server.log().await_line("closed"));
  EXPECT_EQ(server.stream(slow_stream, "x"), Streamed::gone);
  EXPECT_EQ(server.server().statistics().streams_cut.load(), 1u);
  EXPECT_EQ(server.log().count("closed"), 1u);
  EXPECT_EQ(server.log().count("drained"), 0u);
  EXPECT_EQ(server.stream(good_stream, "data: end\n\n"), Streamed::queued);
  EXPECT_TRUE(good.receive_until("data: end\n\n"));
}

TEST(Stream, AFullStreamSaysWhenItHasDrainedAndGoesOn) {
  Limits limits;
  limits.full_stream_timeout = std::chrono::hours(1);
  TestServer server(limits);
  Client slow(server.address(), 4096), good(server.address());
  slow.send(get("/stream"));
  const ConnectionId slow_stream = server.await_stream();
  good.send(get("/stream"));
  fill(server, slow_stream, server.await_stream(), good);
  EXPECT_EQ(server.stream(slow_stream, "small"), Streamed::full) << "nothing overtakes what was refused";
  EXPECT_EQ(server.log().count("drained"), 0u);
  std::thread reader([&] { EXPECT_TRUE(slow.receive_until("data: after\n\n")); });
  EXPECT_TRUE(server.log().await_line("drained"));
  EXPECT_EQ(server.stream(slow_stream, "data: after\n\n"), Streamed::queued);
  reader.join();
  EXPECT_EQ(server.server().statistics().streams_cut.load(), 0u);
}

TEST(Stream, OneThatIsEmptyTakesWhatIsLargerThanItsBacklog) {
  TestServer server;
  Client client(server.address());
  client.send(get("/stream"));
  const std::string large(2 * Limits().max_stream_backlog, 'x');
  EXPECT_EQ(server.stream(server.await_stream(), large + "end"), Streamed::queued);
  EXPECT_TRUE(client.receive_until("xend"));
}

TEST(Stream, WhenSlowReadersTogetherHoldTooMuchTheSlowestGoFirst) {
  Limits limits;
  limits.max_stream_backlog = 8 * 1024 * 1024;
  limits.max_loop_backlog = 20 * 1024 * 1024;
  TestServer server(limits);
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<ConnectionId> streams;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Client>(server.address(), 4096));
    clients.back()->send(get("/stream"));
    streams.push_back(server.await_stream());
    // More than the kernel takes for a reader that does not read, and two of them more than the loop may
    // keep.
    EXPECT_EQ(server.stream(streams.back(), std::string(16 * 1024 * 1024, 'x')), Streamed::queued);
  }
  EXPECT_TRUE(server.log().await([](auto& log) { return std::ranges::count(log.lines, "closed") == 3; }));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(server.stream(streams[size_t(i)], "x"), Streamed::gone) << i;
  EXPECT_NE(server.stream(streams[3], "x"), Streamed::gone);
}

TEST(Stream, ASlowReaderWithinTheLimitGetsEveryByteInOrder) {
  Limits limits;
  limits.max_stream_backlog = 64 * 1024 * 1024;
  TestServer server(limits);
  Client client(server.address(), 4096);
  client.send(get("/stream"));
  const ConnectionId stream = server.await_stream();
  // More than the kernel takes at once, in pieces of many sizes, so that most writes end within one of them.
  std::string expected = ": hello\n\n";
  server.on_loop([&](Loop& loop) {
    for (size_t i = 0; i < 2000; ++i) {
      const std::string text =
          "<" + std::to_string(i) + std::string(i * 37 % 16'000, char('a' + i % 26)) + ">";
      EXPECT_EQ(loop.stream(stream, std::make_shared<const std::string>(text)), Streamed::queued);
      expected += text;
    }
    loop.close(stream);
  });
  const Content all = decode(client.receive_all());
  EXPECT_TRUE(all.bytes == expected);
  EXPECT_TRUE(all.is_whole);
}

TEST(Stream, ASlowReaderOfHttp10GetsEveryByteInOrder) {
  Limits limits;
  limits.max_stream_backlog = 64 * 1024 * 1024;
  TestServer server(limits);
  Client client(server.address(), 4096);
  client.send(get_with_1_0("/stream"));
  const ConnectionId stream = server.await_stream();
  std::string expected = ": hello\n\n";
  server.on_loop([&](Loop& loop) {
    for (size_t i = 0; i < 500; ++i) {
      const std::string text = std::string(1 + i * 37 % 16'000, char('a' + i % 26));
      EXPECT_EQ(loop.stream(stream, std::make_shared<const std::string>(text)), Streamed::queued);
      expected += text;
    }
    loop.close(stream);
  });
  const std::string all = client.receive_all();
  EXPECT_TRUE(all.substr(all.find("\r\n\r\n") + 4) == expected);
}

// Every way in which a gathered write can end: within the size of a chunk, a string, or the line end.
TEST(StreamQueue, GivesTheSameBytesHoweverLittleIsTakenAtOnce) {
  for (size_t step = 1; step < 40; ++step) {
    for (const bool chunked : {true, false}) {
      StreamQueue queue(chunked);
      std::string sent;
      const auto take = [&](size_t most) {
        iovec parts[4];
        const size_t count = queue.gather(parts, std::size(parts));
        std::string given;
        for (size_t i = 0; i < count; ++i)
          given.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
        const size_t taken = std::min(most, given.size());
        sent += given.substr(0, taken);
        queue.consume(taken);
      };
      std::string expected;
      for (size_t i = 0; i < 30; ++i) {
        const std::string text(i * 7 % 23, char('a' + i % 26));
        queue.push(std::make_shared<const std::string>(text));
        expected += text;
        if (i % 3 == 0) take(step);
      }
      queue.end();
      for (int guard = 0; !queue.empty() && guard < 10'000; ++guard) take(step);
      EXPECT_EQ(queue.bytes(), 0u);
      if (!chunked) {
        EXPECT_EQ(sent, expected) << step;
        continue;
      }
      const Content content = decode("\r\n\r\n" + sent);
      EXPECT_EQ(content.bytes, expected) << step;
      EXPECT_TRUE(content.is_whole) << step;
    }
  }
}

TEST(Stream, AReaderThatTakesNothingIsCutOffEvenWithASmallBacklog) {
  Limits limits;
  limits.write_timeout = std::chrono::milliseconds(30);
  limits.max_stream_backlog = 64 * 1024 * 1024;  // more than the kernel takes
  TestServer server(limits);
  Client client(server.address(), 4096);
  client.send(get("/stream"));
  const ConnectionId stream = server.await_stream();
  EXPECT_EQ(server.stream(stream, std::string(32 * 1024 * 1024, 'x')), Streamed::queued);
  EXPECT_TRUE(server.log().await_line("closed"));
  EXPECT_EQ(server.server().statistics().streams_cut.load(), 1u);
}

TEST(Stream, HasNoIdleTimeOut) {
  Limits limits;
  limits.idle_timeout = limits.header_timeout = limits.write_timeout = std::chrono::milliseconds(20);
  TestServer server(limits);
  const auto stream_client = server.connect_with(get("/stream"));
  const ConnectionId stream = server.await_stream();
  const auto other = server.connect_with(get("/wait?200"));
  EXPECT_EQ(other->receive()->body, "time is over");
  EXPECT_EQ(server.stream(stream, "data: still here\n\n"), Streamed::queued);
  EXPECT_TRUE(stream_client->receive_until("data: still here\n\n"));
}

}  // namespace
}  // namespace turnstile::http
