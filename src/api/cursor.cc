#include "api/cursor.h"

#include <simdjson.h>

#include <array>

#include "api/byte_scan.h"

namespace turnstile {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr uint8_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values;
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) values[uint8_t(kDigits[i])] = uint8_t(i);
  return values;
}();

// Six bits at a time, without padding.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      held_ = held_ << 8 | uint8_t(byte);
      for (bits_ += 8; bits_ >= 6; bits_ -= 6) out_ += kDigits[held_ >> (bits_ - 6) & 63];
    }
  }
  void finish() {
    if (bits_ > 0) out_ += kDigits[held_ << (6 - bits_) & 63];
  }

 private:
  std::string& out_;
  uint32_t held_ = 0;
  unsigned bits_ = 0;
};

// False for anything that Encoder does not write, so that a lane has exactly one cursor.
bool decode(std::string_view text, std::string& out) {
  if (text.size() % 4 == 1) return false;
  uint32_t held = 0;
  unsigned bits = 0;
  for (const char digit : text) {
    const uint8_t value = kValues[uint8_t(digit)];
    if (value == kNoDigit) return false;
    held = held << 6 | value;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += char(uint8_t(held >> bits));
    }
  }
  return (held & ((1u << bits) - 1)) == 0;
}

bool is_id(std::string_view text, size_t longest) {
  return !text.empty() && text.size() <= longest && !has_control_character(text) &&
         simdjson::validate_utf8(text.data(), text.size());
}

}  // namespace

void append_cursor(std::string& out, const LaneName& last) {
  Encoder encoder(out);
  encoder.add(last.resource.text);
  encoder.add(std::string_view("\0", 1));  // no id contains it
  encoder.add(last.operation.text);
  encoder.finish();
}

std::optional<LaneName> read_cursor(std::string_view cursor, const ApiLimits& limits, std::string& scratch) {
  scratch.clear();
  if (!decode(cursor, scratch)) return std::nullopt;
  const std::string_view pair = scratch;
  const size_t border = pair.find('\0');
  if (border == pair.npos) return std::nullopt;
  const std::string_view resource = pair.substr(0, border), operation = pair.substr(border + 1);
  if (!is_id(resource, limits.resource_id) || !is_id(operation, limits.type)) return std::nullopt;
  return LaneName{OperationName(operation), ResourceId(resource)};
}

}  // namespace turnstile
