// What the fuzz targets share: bytes cut into pieces, and bytes taken apart into values.
//
// A target is one file that defines run(). It fails by aborting: TS_CHECK with the property in words, or a
// sanitizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"

namespace turnstile::fuzz {

// Defined by each target; called once for each input. Nothing may be kept from one call to the next.
void run(std::string_view bytes);

// Takes values off the front of an input; when it is used up they are zeros and empty texts.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  uint8_t byte() { return number<uint8_t>(); }
  template <class Integer>
  Integer number() {
    Integer value{};
    const std::string_view bytes = text(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view text(size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // A short text with its length before it.
  std::string_view short_text() { return text(byte()); }
  std::string_view rest() { return text(rest_.size()); }

 private:
  std::string_view rest_;
};

// Calls `each(piece)` for pieces of 1 to `longest` bytes (0: of one), until it returns false. The same
// `longest` cuts the same way. Returns what was not handed out.
template <class Each>
std::string_view in_pieces(std::string_view bytes, uint8_t longest, Each each) {
  uint32_t state = longest;
  while (!bytes.empty()) {
    state = state * 1664525 + 1013904223;
    const size_t size = 1 + (longest == 0 ? 0 : (state >> 16) % longest);
    const std::string_view piece = bytes.substr(0, size);
    bytes.remove_prefix(piece.size());
    if (!each(piece)) break;
  }
  return bytes;
}

// A copy that ends where its memory does, so that AddressSanitizer sees a read of one byte too many; with
// `padding` readable bytes behind it.
class ExactCopy {
 public:
  explicit ExactCopy(std::string_view text, size_t padding = 0, char fill = 0)
      : memory_(new char[text.size() + padding]), size_(text.size()) {
    std::ranges::copy(text, memory_.get());
    std::fill_n(memory_.get() + size_, padding, fill);
  }
  char* data() { return memory_.get(); }
  std::string_view view() const { return {memory_.get(), size_}; }

 private:
  std::unique_ptr<char[]> memory_;
  size_t size_;
};

}  // namespace turnstile::fuzz
