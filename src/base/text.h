// A string that is stored a million times: eight bytes, and nothing more when it is empty.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace turnstile {

// An owned, immutable string. The heap block holds the length (one byte below 255, else five), then the
// bytes, so that the digest of a layer takes 72 bytes and an absent request id none (std::string: 112 and
// 32).
class Text {
 public:
  Text() = default;
  explicit Text(std::string_view from) {
    if (from.empty()) return;
    const size_t head = from.size() < kLong ? 1 : 5;
    block_.reset(new char[head + from.size()]);
    if (head == 1) {
      block_[0] = char(uint8_t(from.size()));
    } else {
      block_[0] = char(kLong);
      const uint32_t size = uint32_t(from.size());
      std::memcpy(&block_[1], &size, sizeof size);
    }
    std::memcpy(&block_[head], from.data(), from.size());
  }

  std::string_view view() const {
    if (!block_) return {};
    const uint8_t first = uint8_t(block_[0]);
    if (first < kLong) return {&block_[1], first};
    uint32_t size;
    std::memcpy(&size, &block_[1], sizeof size);
    return {&block_[5], size};
  }
  operator std::string_view() const { return view(); }
  bool empty() const { return !block_; }
  friend bool operator==(const Text& a, std::string_view b) { return a.view() == b; }

 private:
  static constexpr uint8_t kLong = 255;
  std::unique_ptr<char[]> block_;
};

}  // namespace turnstile
