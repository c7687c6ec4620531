// Numbers and strings as bytes: little-endian fixed integers, LEB128 varints, strings with their length
// before them.
//
// The writing half assumes that its caller has made room; the reading half trusts nothing.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace turnstile::wire {

static_assert(std::endian::native == std::endian::little,
              "the fixed integers of the format are little-endian");

inline constexpr size_t kMostVarintBytes = 10;

template <class Integer>
char* put_fixed(char* to, Integer value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

template <class Integer>
Integer get_fixed(const char* from) {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline char* put_varint(char* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = char(uint8_t(value) | 0x80);
  *to++ = char(uint8_t(value));
  return to;
}

constexpr size_t varint_bytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

inline char* put_string(char* to, std::string_view text) {
  to = put_varint(to, text.size());
  if (!text.empty()) std::memcpy(to, text.data(), text.size());  // an empty one may point nowhere
  return to + text.size();
}

// Signed numbers that are mostly small: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
constexpr uint64_t zigzag(int64_t value) { return (uint64_t(value) << 1) ^ uint64_t(value >> 63); }
constexpr int64_t unzigzag(uint64_t value) { return int64_t(value >> 1) ^ -int64_t(value & 1); }

// Reads from the front of some bytes. Each take_ returns false, and from then on all do, when the bytes do
// not hold what was asked for; nothing outside of them is ever read.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view rest() const { return bytes_; }

  template <class Integer>
  bool take_fixed(Integer& value) {
    if (bytes_.size() < sizeof value) return fail();
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its size was looked at
    value = get_fixed<Integer>(bytes_.data());
    bytes_.remove_prefix(sizeof value);
    return true;
  }

  bool take_varint(uint64_t& value) {
    value = 0;
    for (size_t i = 0; i < bytes_.size() && i < kMostVarintBytes; ++i) {
      const uint8_t byte = uint8_t(bytes_[i]);
      if (i == kMostVarintBytes - 1 && byte > 1) break;  // would not fit 64 bits
      value |= uint64_t(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        bytes_.remove_prefix(i + 1);
        return true;
      }
    }
    return fail();
  }

  bool take_string(std::string_view& text) {
    uint64_t size;
    if (!take_varint(size) || size > bytes_.size()) return fail();
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }

 private:
  bool fail() {
    bytes_ = {};
    return false;
  }

  std::string_view bytes_;
};

}  // namespace turnstile::wire
