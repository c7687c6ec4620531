// Looking for bytes that need care, eight at a time: control characters in ids, and whatever JSON must
// escape.
//
// Nearly every text has none of them, so the fast path only has to prove that.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace turnstile {

constexpr uint64_t eight_times(uint8_t byte) { return 0x0101010101010101ull * byte; }

// The high bit of each byte of the result that is zero in `word` is set; bytes above the first such one may
// be set wrongly, so only use it to know whether there is one.
constexpr uint64_t zero_bytes(uint64_t word) { return (word - eight_times(1)) & ~word & eight_times(0x80); }

// Likewise for bytes below 0x20 and 0x7f.
constexpr uint64_t control_bytes(uint64_t word) {
  return ((word - eight_times(0x20)) & ~word & eight_times(0x80)) | zero_bytes(word ^ eight_times(0x7f));
}
constexpr uint64_t escaped_bytes(uint64_t word) {
  return control_bytes(word) | zero_bytes(word ^ eight_times('"')) | zero_bytes(word ^ eight_times('\\'));
}

// Whether `found` is non-zero for any eight bytes of `text`; a short rest is filled up with spaces.
template <class Found>
bool any_byte(std::string_view text, Found found) {
  const char* at = text.data();
  size_t left = text.size();
  uint64_t word;
  for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    if (found(word)) return true;
  }
  if (left == 0) return false;
  word = eight_times(' ');
  std::memcpy(&word, at, left);
  return found(word) != 0;
}

inline bool has_control_character(std::string_view text) { return any_byte(text, control_bytes); }

}  // namespace turnstile
