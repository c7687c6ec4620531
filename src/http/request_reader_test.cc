#include "http/request_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace turnstile::http {
namespace {

// Feeds `bytes` in pieces of `piece` bytes, as a connection does, and tells in a line for each request or
// refusal what was seen.
std::vector<std::string> read_in_pieces(std::string_view bytes, size_t first, size_t piece,
                                        const Limits& limits) {
  std::vector<std::string> seen;
  InBuffer in;
  RequestReader reader;
  for (size_t size = first; !bytes.empty() || size > 0; size = piece) {
    for (std::string_view part = bytes.substr(0, size); !part.empty();) {
      reader.compact(in);
      in.prepare(reader.wanted(limits));
      const size_t count = std::min(part.size(), in.room());
      std::memcpy(in.tail(), part.data(), count);
      in.commit(count);
      part.remove_prefix(count);
      Incoming incoming;
      for (bool more = true; more;) {
        switch (reader.next(in, limits, incoming)) {
          case RequestReader::Result::incomplete:
            more = false;
            break;
          case RequestReader::Result::refused:
            seen.push_back(std::to_string(incoming.status));
            return seen;
          case RequestReader::Result::complete:
            seen.push_back(std::string(incoming.request.method_text) + " " +
                           std::string(incoming.request.path) + "?" + std::string(incoming.request.query) +
                           " " + std::string(incoming.request.body));
            reader.finish(in);
        }
      }
    }
    bytes.remove_prefix(std::min(size, bytes.size()));
    if (bytes.empty()) break;
  }
  return seen;
}

std::vector<std::string> read(std::string_view bytes, const Limits& limits = {}) {
  return read_in_pieces(bytes, bytes.size(), bytes.size(), limits);
}

struct Case {
  const char* name;
  std::string bytes;
  std::vector<std::string> expected;
};

std::vector<Case> cases() {
  const std::string chunked = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto length = [&](std::string lines) {
    return "POST /c HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n\r\nhello";
  };
  return {
      {"a get", "GET /p?q=1 HTTP/1.1\r\nHost: a\r\n\r\n", {"GET /p?q=1 "}},
      {"two posts",
       length("Content-Length: 5") + length("content-length:5"),
       {"POST /c? hello", "POST /c? hello"}},
      {"other method", "DELETE /p HTTP/1.1\r\nHost: a\r\n\r\n", {"DELETE /p? "}},
      {"absolute form", "GET http://h:1/p?x HTTP/1.1\r\nHost: a\r\n\r\n", {"GET /p?x "}},
      {"absolute form without a path", "GET http://h HTTP/1.1\r\nHost: a\r\n\r\n", {"GET /? "}},
      {"an empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", {"GET /? "}},
      {"two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", {"400"}},
      {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", {"GET /? "}},
      {"equal lengths", length("Content-Length: 5\r\nContent-Length: 5"), {"POST /c? hello"}},
      {"chunks",
       chunked + "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
       {"POST /c? abc0123456789", "GET /? "}},
      {"chunk extension and trailer",
       chunked + "3;a=\"b\"\r\nabc\r\n00\r\nX: y\r\nZ: \r\n\r\n",
       {"POST /c? abc"}},
      {"no chunk", chunked + "0\r\n\r\n", {"POST /c? "}},

      {"length and chunked", length("Content-Length: 5\r\nTransfer-Encoding: chunked"), {"400"}},
      {"chunked and length", length("Transfer-Encoding: chunked\r\nContent-Length: 5"), {"400"}},
      {"differing lengths", length("Content-Length: 5\r\nContent-Length: 6"), {"400"}},
      {"differing lengths in a list", length("Content-Length: 5, 6"), {"400"}},
      {"negative length", length("Content-Length: -5"), {"400"}},
      {"signed length", length("Content-Length: +5"), {"400"}},
      {"garbage length", length("Content-Length: 5x"), {"400"}},
      {"empty length", length("Content-Length: "), {"400"}},
      {"hexadecimal length", length("Content-Length: 0x5"), {"400"}},
      {"overflowing length", length("Content-Length: 18446744073709551621"), {"400"}},
      {"huge length", length("Content-Length: 18446744073709551615"), {"413"}},
      {"unknown encoding", length("Transfer-Encoding: gzip"), {"400"}},
      {"encoding that is not only chunked", length("Transfer-Encoding: gzip, chunked"), {"400"}},
      {"chunked twice", length("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), {"400"}},
      {"disguised chunked",
       length("Transfer-Encoding: \x0b"
              "chunked"),
       {"400"}},
      {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {"400"}},
      {"bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", {"400"}},
      {"bare LF only", "GET / HTTP/1.1\nHost: a\n\n", {"400"}},
      {"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n", {"400"}},
      {"bare CR", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", {"400"}},
      {"CR CR LF", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", {"400"}},
      {"NUL in a value", std::string("GET / HTTP/1.1\r\nHost: a") + '\0' + "\r\n\r\n", {"400"}},
      {"NUL in the target", std::string("GET /") + '\0' + " HTTP/1.1\r\nHost: a\r\n\r\n", {"400"}},
      {"folded line", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", {"400"}},
      {"folded first line", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", {"400"}},
      {"folded with a tab", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\t2\r\n\r\n", {"400"}},
      {"blank before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", {"400"}},
      {"no colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", {"400"}},
      {"empty name", "GET / HTTP/1.1\r\n: a\r\n\r\n", {"400"}},
      {"no Host", "GET / HTTP/1.1\r\nX: a\r\n\r\n", {"400"}},
      {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", {"400"}},
      {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", {"400"}},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", {"400"}},
      {"HTTP/0.9", "GET /\r\n\r\n", {"400"}},
      {"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", {"400"}},
      {"no slash", "GET p HTTP/1.1\r\nHost: a\r\n\r\n", {"400"}},
      {"star", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", {"400"}},
      {"another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", {"400"}},
      {"TLS", "\x16\x03\x01\x02", {"400"}},
      {"good, then bad", "GET /p HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\n", {"GET /p? ", "400"}},

      {"chunk without a size", chunked + "\r\nabc\r\n", {"400"}},
      {"chunk of garbage", chunked + "g\r\n", {"400"}},
      {"negative chunk", chunked + "-1\r\n", {"400"}},
      {"chunk with 0x", chunked + "0x3\r\nabc\r\n", {"400"}},
      {"chunk with a blank", chunked + "3 \r\nabc\r\n", {"400"}},
      {"chunk size with bare LF", chunked + "3\nabc\r\n", {"400"}},
      {"LF in a quoted extension", chunked + "3;a=\"\n\"\r\nabc\r\n", {"400"}},
      {"chunk too long for its size", chunked + "3\r\nabcd\r\n", {"400"}},
      {"chunk that ends with LF", chunked + "3\r\nabc\n", {"400"}},
      {"chunk size that overflows", chunked + "FFFFFFFFFFFFFFFFF\r\n", {"413"}},
      {"bare LF in a trailer", chunked + "0\r\nX: y\n\r\n", {"400"}},
      {"chunk extension without end", chunked + "3;" + std::string(600, 'x'), {"400"}},
      {"trailer without end",
       chunked + "0\r\n" +
           [] {
             std::string fields;
             for (int i = 0; i < 100; ++i) fields += "X: " + std::string(90, 'y') + "\r\n";
             return fields;
           }(),
       {"400"}},
  };
}

TEST(RequestReader, AcceptsWhatIsWellFormedAndRefusesEveryOtherFraming) {
  for (const Case& each : cases()) EXPECT_EQ(read(each.bytes), each.expected) << each.name;
}

TEST(RequestReader, SeesTheSameInWhateverPiecesTheBytesCome) {
  for (const Case& each : cases()) {
    for (size_t split = 1; split < each.bytes.size(); ++split)
      EXPECT_EQ(read_in_pieces(each.bytes, split, each.bytes.size(), {}), each.expected)
          << each.name << split;
    for (size_t piece = 1; piece <= 7; ++piece)
      EXPECT_EQ(read_in_pieces(each.bytes, piece, piece, {}), each.expected) << each.name << piece;
  }
}

TEST(RequestReader, RefusesHeadsAndBodiesThatAreTooLargeAsSoonAsItKnows) {
  Limits limits;
  limits.max_head = 200;
  limits.max_body = 10;
  limits.max_batch_body = 20;
  const std::string host = " HTTP/1.1\r\nHost: a\r\n";
  const std::string padding = "X: " + std::string(200, 'x');
  EXPECT_EQ(read("GET /" + host + padding + "\r\n\r\n", limits), std::vector<std::string>{"431"});
  EXPECT_EQ(read("GET /" + host + padding, limits), std::vector<std::string>{"431"});
  EXPECT_EQ(read("POST /p" + host + "Content-Length: 11\r\n\r\n", limits), std::vector<std::string>{"413"});
  EXPECT_EQ(read("POST /batch" + host + "Content-Length: 21\r\n\r\n", limits),
            std::vector<std::string>{"413"});
  EXPECT_EQ(read("POST /batch" + host + "Content-Length: 11\r\n\r\nhello world", limits),
            std::vector<std::string>{"POST /batch? hello world"});
  EXPECT_EQ(read("POST /p" + host + "Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\n", limits),
            std::vector<std::string>{"413"});
}

TEST(RequestReader, TakesBodiesUpToTheLimitWithPaddingBehindThem) {
  const Limits limits;
  const std::string body(limits.max_batch_body, 'b');
  const std::string head = "POST /batch HTTP/1.1\r\nHost: a\r\n";
  const std::string plain = head + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  EXPECT_EQ(read_in_pieces(plain, 5, 10'000, limits), std::vector<std::string>{"POST /batch? " + body});
  std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  for (size_t at = 0; at < body.size(); at += 256) chunked += "100\r\n" + body.substr(at, 256) + "\r\n";
  chunked += "0\r\n\r\n";
  EXPECT_EQ(read_in_pieces(chunked, 5, 9'999, limits), std::vector<std::string>{"POST /batch? " + body});
}

TEST(RequestReader, AsksForTheBodyOnceWhenTheClientWaitsForThat) {
  InBuffer in;
  in.prepare(0);
  const std::string head = "POST /p HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  std::memcpy(in.tail(), head.data(), head.size());
  in.commit(head.size());
  RequestReader reader;
  Incoming incoming;
  EXPECT_EQ(reader.next(in, Limits(), incoming), RequestReader::Result::incomplete);
  EXPECT_TRUE(reader.take_continue());
  EXPECT_FALSE(reader.take_continue());
  EXPECT_EQ(reader.phase(), RequestReader::Phase::body);
}

}  // namespace
}  // namespace turnstile::http
