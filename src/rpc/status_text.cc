// See status_text.h.
#include "rpc/status_text.h"

namespace turnstile::rpc {
namespace {

constexpr size_t kMaxSize = 4 << 10;
constexpr std::string_view kCut = "...", kHex = "0123456789ABCDEF";
constexpr size_t kLongestLetter = 4;  // of UTF-8; what goes on after so many bytes is none

bool continues_a_letter(char byte) { return (uint8_t(byte) & 0xC0) == 0x80; }  // in UTF-8

}  // namespace

std::string status_text(std::string_view text) {
  std::string out;
  size_t letter = 0, letter_at = 0;  // where the last one begins, in `out` and in `text`
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (!continues_a_letter(byte) || i - letter_at == kLongestLetter) {
      letter = out.size();
      letter_at = i;
    }
    const bool at_an_end = i == 0 || i == text.size() - 1;  // where HTTP/2 allows no spaces
    if (byte > ' ' && byte <= '~' && byte != '%')
      out += byte;
    else if (byte == ' ' && !at_an_end)
      out += byte;
    else
      out.append({'%', kHex[uint8_t(byte) >> 4], kHex[uint8_t(byte) & 15]});
    if (out.size() > kMaxSize - kCut.size()) return out.erase(letter).append(kCut);
  }
  return out;
}

}  // namespace turnstile::rpc
