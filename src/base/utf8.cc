#include "base/utf8.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace turnstile {

Utf8Character take_character(std::string_view& text) {
  const auto byte = [&](size_t i) { return uint8_t(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : (first & 0xF0) == 0xE0        ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  char32_t code = length <= 1 ? first : first & (0xFF >> (length + 1));
  bool valid = length > 0 && length <= text.size();
  for (size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xC0) == 0x80;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  valid = valid && code >= kLeast[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  text.remove_prefix(valid ? length : 1);
  return valid ? Utf8Character{.code = code} : Utf8Character{.code = first, .valid = false};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (!take_character(text).valid) return false;
  }
  return true;
}

std::string to_utf8(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    const std::string_view from = text;
    const std::string_view character =
        take_character(text).valid ? from.substr(0, from.size() - text.size()) : kReplacement;
    if (out.size() + character.size() > most) break;
    out += character;
  }
  return out;
}

}  // namespace turnstile
