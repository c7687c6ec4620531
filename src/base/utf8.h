// UTF-8 as it comes from outside: which bytes are characters, and what is left of a text that has others.
#pragma once

#include <string>
#include <string_view>

namespace turnstile {

// U+FFFD, for bytes that are no characters.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Utf8Character {
  char32_t code = 0;
  bool valid = true;
};
// Takes the first character of a text that is not empty away. A byte that is no UTF-8 is one of its own.
Utf8Character take_character(std::string_view& text);

bool is_utf8(std::string_view text);

// The text with U+FFFD for each byte that is no UTF-8, and without the characters that would make it longer
// than `most` bytes.
std::string to_utf8(std::string_view text, size_t most = std::string_view::npos);

}  // namespace turnstile
