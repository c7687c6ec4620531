// Limits, and what a body may be made of. What framing is well formed is in framing_*_test.cc.
#include "http/request_reader.h"

#include <gtest/gtest.h>

#include "http/framing_test_support.h"

namespace turnstile::http {
namespace {

TEST(RequestReader, RefusesHeadsAndBodiesThatAreTooLargeAsSoonAsItKnows) {
  Limits limits;
  limits.max_head = 200;
  limits.max_body = 10;
  limits.max_batch_body = 20;
  const std::string host = " HTTP/1.1\r\nHost: a\r\n";
  const std::string padding = "X: " + std::string(200, 'x');
  EXPECT_EQ(read_at_once("GET /" + host + padding + "\r\n\r\n", limits), std::vector<std::string>{"431"});
  EXPECT_EQ(read_at_once("GET /" + host + padding, limits), std::vector<std::string>{"431"});
  EXPECT_EQ(read_at_once("POST /p" + host + "Content-Length: 11\r\n\r\n", limits),
            std::vector<std::string>{"413"});
  EXPECT_EQ(read_at_once("POST /batch" + host + "Content-Length: 21\r\n\r\n", limits),
            std::vector<std::string>{"413"});
  EXPECT_EQ(read_at_once("POST /batch" + host + "Content-Length: 11\r\n\r\nhello world", limits),
            std::vector<std::string>{"POST /batch? hello world"});
  EXPECT_EQ(read_at_once("POST /p" + host + "Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\n", limits),
            std::vector<std::string>{"413"});
}

TEST(RequestReader, RefusesALongHeadAlikeInWhateverPiecesItComes) {
  Limits limits;
  limits.max_head = 200;
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const auto expect = [&](const std::string& bytes, const std::string& status) {
    for (const size_t piece : {size_t(1), size_t(7), size_t(100), bytes.size()})
      EXPECT_EQ(read_in_pieces(bytes, piece, piece, limits), std::vector<std::string>{status})
          << "pieces of " << piece;
  };
  // A line that is not well formed, behind the limit and before it.
  expect(head + std::string(200, 'x') + "\r\nM\n", "431");
  expect(head + std::string(200 - head.size() - 5, 'x') + "\r\nM\n" + std::string(200, 'x'), "400");
  // An end exactly at the limit, and one byte behind it.
  const std::string end = "\r\n\r\n";
  expect(head + std::string(200 - head.size() - end.size(), 'x') + end, "GET /? ");
  expect(head + std::string(201 - head.size() - end.size(), 'x') + end, "431");
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
