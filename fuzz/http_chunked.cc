// Bodies in chunks. What must hold:
// - the same bytes give the same content, the same verdict and the same end, in whatever pieces they come and
// whether or
//   not the remains of sizes are cut out between them;
// - no more content than the limit is let in, and no more bytes are taken than there are;
// - any content that is written in chunks is read back.
#include "http/chunked.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using http::ChunkedBody;
using Result = ChunkedBody::Result;

struct Seen {
  Result result = Result::incomplete;
  std::string content;
  size_t taken = 0;
  bool operator==(const Seen&) const = default;
};

Seen read_at_once(std::string_view bytes, size_t limit) {
  ExactCopy copy(bytes);
  ChunkedBody body;
  Seen seen;
  seen.result = body.decode(copy.data(), bytes.size(), limit);
  TS_CHECK(body.decoded() <= body.taken() && body.taken() <= bytes.size(), "what is taken was there");
  seen.content = copy.view().substr(0, body.decoded());
  seen.taken = body.taken();
  return seen;
}

Seen read_in_pieces(std::string_view bytes, size_t limit, uint8_t longest) {
  ChunkedBody body;
  std::string there;
  size_t cut = 0;
  Seen seen;
  in_pieces(bytes, longest, [&](std::string_view piece) {
    there += piece;
    seen.result = body.decode(there.data(), there.size(), limit);
    if (longest % 2 == 1) {
      cut += body.taken() - body.decoded();
      there.erase(body.decoded(), body.taken() - body.decoded());
      body.compacted();
    }
    return seen.result == Result::incomplete;
  });
  seen.content = there.substr(0, body.decoded());
  seen.taken = body.taken() + cut;
  return seen;
}

std::string in_chunks(std::string_view content, uint8_t longest) {
  std::string out;
  in_pieces(content, longest, [&](std::string_view piece) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    if (piece.size() > 15) out += kDigits[piece.size() / 16];
    out += kDigits[piece.size() % 16];
    out.append("\r\n").append(piece).append("\r\n");
    return true;
  });
  return out + "0\r\n\r\n";
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t longest = input.byte();
  const size_t limit = size_t(input.byte()) * 4;
  const std::string_view body = input.rest();

  const Seen whole = read_at_once(body, limit);
  TS_CHECK(whole.content.size() <= limit, "no more is let in than the limit");
  TS_CHECK(whole == read_in_pieces(body, limit, longest), "a body is read alike in whatever pieces it comes");

  const std::string chunks = in_chunks(body, longest);
  const Seen back = read_at_once(chunks, body.size());
  TS_CHECK(back.result == Result::complete && back.content == body && back.taken == chunks.size(),
           "what was written in chunks is read back");
}

}  // namespace turnstile::fuzz
