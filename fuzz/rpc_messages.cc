// gRPC's framing of messages, and the text of a status. What must hold:
// - the same bytes give the same messages and the same error, in whatever pieces they come;
// - no message is above the limit; messages that are framed are read back;
// - a status' text fits a header of HTTP/2, and says what the status said, as far as there is room.
#include <charconv>
#include <vector>

#include "rpc/message_reader.h"
#include "rpc/status_text.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

constexpr size_t kMaxMessage = 200;

struct Seen {
  std::vector<std::string> messages;
  int error = 0;
  bool in_the_middle = false;
  bool operator==(const Seen&) const = default;
};

class Reading {
 public:
  bool feed(std::string_view bytes) {
    while (auto message = reader_.next(bytes)) {
      TS_CHECK(message->size() <= kMaxMessage, "a message is within its limit");
      seen_.messages.push_back(*message);
      reader_.recycle(std::move(*message));
    }
    TS_CHECK(bytes.empty() || reader_.error(), "all bytes are taken, but for those behind an error");
    return !reader_.error();
  }
  Seen seen() {
    seen_.error = reader_.error() ? int(reader_.error()->code) : 0;
    seen_.in_the_middle = reader_.in_the_middle();
    return seen_;
  }

 private:
  rpc::MessageReader reader_{kMaxMessage};
  Seen seen_;
};

void check_round_trip(std::string_view bytes, uint8_t longest) {
  std::vector<std::string> sent;
  std::string framed;
  in_pieces(bytes, std::clamp<uint8_t>(longest, 20, kMaxMessage), [&](std::string_view message) {
    const auto prefix = rpc::prefix_of(message.size());
    framed.append(prefix.data(), prefix.size()).append(message);
    sent.emplace_back(message);
    return true;
  });
  Reading reading;
  TS_CHECK(reading.feed(framed), "framed messages are taken");
  TS_CHECK(reading.seen() == (Seen{sent, 0, false}), "framed messages are read back");
}

void check_status(std::string_view text) {
  const std::string shown = rpc::status_text(text);
  TS_CHECK(shown.size() <= 4096, "a status' text fits a header");
  TS_CHECK(std::ranges::all_of(shown, [](char c) { return c >= ' ' && c <= '~'; }), "it is printable ASCII");
  TS_CHECK(!shown.starts_with(' ') && !shown.ends_with(' '),
           "HTTP/2 takes no spaces at the ends of a header");
  std::string meant;
  for (size_t i = 0; i < shown.size(); ++i) {
    unsigned byte = uint8_t(shown[i]);
    if (byte == '%') {
      TS_CHECK(shown.size() - i >= 3, "an escape is complete");
      std::from_chars(shown.data() + i + 1, shown.data() + i + 3, byte, 16);
      i += 2;
    }
    meant += char(byte);
  }
  if (meant == text) return;
  TS_CHECK(meant.ends_with("...") && shown.size() > 2000, "only a long text is cut");
  TS_CHECK(text.starts_with(meant.substr(0, meant.size() - 3)),
           "what is left of a cut text is its beginning");
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t longest = input.byte();
  const std::string_view stream = input.rest();
  Reading whole, pieces;
  whole.feed(stream);
  in_pieces(stream, longest, [&](std::string_view piece) { return pieces.feed(piece); });
  TS_CHECK(whole.seen() == pieces.seen(), "a stream is read alike in whatever pieces it comes");
  check_round_trip(stream, longest);
  // Escaping takes most of the time, and only a text above 1,300 bytes can be cut.
  std::string text(stream.substr(0, 64));
  if (longest == 255)
    while (text.size() < 1500 && !stream.empty()) text += stream;
  check_status(text);
}

}  // namespace turnstile::fuzz
