// The client's reader of HTTP answers. What must hold:
// - the same bytes give the same answer or the same fault, in whatever pieces they come (what follows a
// complete answer
//   is a fault, which the reader of pieces may not have seen yet);
// - a body is no longer than what was sent, and a time to wait can be counted in milliseconds.
#include "client/answer_parser.h"

#include "support.h"

namespace turnstile::fuzz {
namespace {

using client::AnswerParser;
using Fed = AnswerParser::Fed;

struct Seen {
  Fed fed = Fed::more;
  bool keep_alive = false;
  client::Answer answer;
};

// `left`: bytes behind a complete answer.
Seen finish(AnswerParser& parser, Fed fed, bool left) {
  if (fed == Fed::more) fed = parser.end();
  if (fed == Fed::done && left) fed = Fed::wrong;
  if (fed != Fed::done) return {fed, false, {}};
  const bool keep_alive = parser.keep_alive();
  return {fed, keep_alive, parser.take()};
}

Seen read_at_once(std::string_view bytes) {
  AnswerParser parser;
  const Fed fed = bytes.empty() ? Fed::more : parser.feed(bytes);
  return finish(parser, fed, false);
}

Seen read_in_pieces(std::string_view bytes, uint8_t longest) {
  AnswerParser parser;
  Fed fed = Fed::more;
  const std::string_view left = in_pieces(bytes, longest, [&](std::string_view piece) {
    fed = parser.feed(piece);
    return fed == Fed::more;
  });
  return finish(parser, fed, !left.empty());
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t longest = input.byte();
  const std::string_view sent = input.rest();

  const Seen whole = read_at_once(sent), pieces = read_in_pieces(sent, longest);
  TS_CHECK(whole.fed == pieces.fed, "an answer is judged alike in whatever pieces it comes");
  TS_CHECK(whole.keep_alive == pieces.keep_alive, "the connection is used in the same way");
  TS_CHECK(whole.answer.status == pieces.answer.status && whole.answer.body == pieces.answer.body &&
               whole.answer.retry_after == pieces.answer.retry_after,
           "an answer is read alike in whatever pieces it comes");
  TS_CHECK(whole.answer.body.size() <= sent.size(), "a body is no longer than what was sent");
  using std::chrono::milliseconds, std::chrono::seconds;
  TS_CHECK(!whole.answer.retry_after ||
               *whole.answer.retry_after <= std::chrono::duration_cast<seconds>(milliseconds::max()),
           "a time to wait can be counted in milliseconds");
}

}  // namespace turnstile::fuzz
