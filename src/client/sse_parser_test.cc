// The event stream's grammar, cut at every place.
#include "client/sse_parser.h"

#include <gtest/gtest.h>

#include <vector>

namespace turnstile::client {
namespace {

constexpr std::string_view kStream =
    ": turnstile\n\nid: 7\ndata: {\"a\":1}\n\n: beat\n\nevent: reset\nid: 9\ndata: x\ndata: y\n\n\ndata\n\n";

std::vector<std::string> read(std::string_view bytes, size_t piece) {
  SseParser parser;
  std::vector<std::string> events;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    EXPECT_EQ(parser.feed(bytes.substr(0, piece),
                          [&](const SseEvent& event) {
                            events.push_back(event.name + "|" + event.id + "|" + event.data);
                            return true;
                          }),
              SseParser::Fed::more);
  }
  return events;
}

TEST(SseParser, GivesTheSameEventsHoweverTheBytesAreCut) {
  const std::vector<std::string> expected = {"|7|{\"a\":1}", "reset|9|x\ny", "|9|"};
  for (size_t piece = 1; piece <= kStream.size(); ++piece) EXPECT_EQ(read(kStream, piece), expected) << piece;
}

TEST(SseParser, TakesAllThreeKindsOfLineEnd) {
  EXPECT_EQ(read("id: 1\r\ndata: a\r\n\r\n", 3), (std::vector<std::string>{"|1|a"}));
  EXPECT_EQ(read("id: 1\rdata: a\r\r", 1), (std::vector<std::string>{"|1|a"}));
}

TEST(SseParser, RefusesAnEventWithoutEnd) {
  SseParser parser;
  const auto never = [](const SseEvent&) { return true; };
  SseParser::Fed fed = SseParser::Fed::more;
  const std::string piece(64 << 10, 'x');
  for (int i = 0; i < 20 && fed == SseParser::Fed::more; ++i) fed = parser.feed(piece, never);
  EXPECT_EQ(fed, SseParser::Fed::too_long);
}

TEST(SseParser, StopsWhenTheReaderHasEnough) {
  SseParser parser;
  int events = 0;
  EXPECT_EQ(parser.feed("data: 1\n\ndata: 2\n\n", [&](const SseEvent&) { return ++events < 1; }),
            SseParser::Fed::enough);
  EXPECT_EQ(events, 1);
}

}  // namespace
}  // namespace turnstile::client
