// The client's reader of event streams. What must hold:
// - the same bytes give the same events, in whatever pieces they come, and the reader stops at the same one
// when told;
// - events have no more data than was sent, and no line ends in a name or an id.
#include <optional>
#include <vector>

#include "client/sse_parser.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using client::SseEvent;
using client::SseParser;
using Fed = SseParser::Fed;

struct Seen {
  Fed fed = Fed::more;
  std::vector<std::string> events;
  size_t data = 0;
  size_t wanted = 0;  // 0: all

  bool take(const SseEvent& event) {
    TS_CHECK((event.id + event.name).find_first_of("\r\n") == std::string::npos,
             "an id and a name are of one line");
    TS_CHECK(event.data.find('\r') == std::string::npos, "data has no ends of lines but its own");
    data += event.data.size();
    events.push_back(event.id + '\r' + event.name + '\r' + event.data);
    return events.size() != wanted;
  }
};

Seen read(std::string_view bytes, uint8_t wanted, std::optional<uint8_t> longest) {
  Seen seen;
  seen.wanted = wanted;
  SseParser parser;
  const SseParser::OnEvent take = [&](const SseEvent& event) { return seen.take(event); };
  const auto feed = [&](std::string_view piece) {
    seen.fed = parser.feed(piece, take);
    return seen.fed == Fed::more;
  };
  if (longest)
    in_pieces(bytes, *longest, feed);
  else
    feed(bytes);
  return seen;
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t longest = input.byte(), wanted = input.byte();
  const ExactCopy stream(input.rest());
  const Seen whole = read(stream.view(), wanted, std::nullopt), pieces = read(stream.view(), wanted, longest);
  TS_CHECK(whole.fed == pieces.fed && whole.events == pieces.events,
           "a stream is read alike in whatever pieces it comes");
  TS_CHECK(whole.data <= stream.view().size(), "events have no more data than was sent");
}

}  // namespace turnstile::fuzz
