#include "journal/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace turnstile::tar {
namespace {

constexpr size_t kNameBytes = 100, kModeAt = 100, kOwnerAt = 108, kGroupAt = 116, kSizeAt = 124,
                 kTimeAt = 136, kChecksumAt = 148, kChecksumBytes = 8, kTypeAt = 156, kMagicAt = 257;
constexpr std::string_view kMagic{
    "ustar\0"
    "00",
    8};
constexpr char kPlainFile = '0';

// The sum of all bytes, where those of the sum itself count as spaces.
uint64_t checksum(std::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i)
    sum += i >= kChecksumAt && i < kChecksumAt + kChecksumBytes ? ' ' : uint8_t(block[i]);
  return sum;
}

std::optional<uint64_t> octal(std::string_view digits) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end == digits.data()) return std::nullopt;
  return value;
}

}  // namespace

std::string make_header(std::string_view name, uint64_t size, int64_t seconds_since_1970) {
  TS_CHECK(name.size() < kNameBytes && size <= kMostBytes,
           "a tar header has room for its file's name and size");
  std::string block(kBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) {
    std::ranges::copy(text, block.begin() + ptrdiff_t(at));
  };
  put(0, name);
  put(kModeAt, "0000600");
  put(kOwnerAt, "0000000");
  put(kGroupAt, "0000000");
  put(kSizeAt, fmt::format("{:011o}", size));
  put(kTimeAt, fmt::format("{:011o}", uint64_t(std::max<int64_t>(0, seconds_since_1970))));
  block[kTypeAt] = kPlainFile;
  put(kMagicAt, kMagic);
  put(kChecksumAt, fmt::format("{:06o}", checksum(block)));
  block[kChecksumAt + 7] = ' ';
  return block;
}

std::optional<Entry> parse_header(std::string_view block) {
  if (block.size() < kBlock || block.substr(kMagicAt, kMagic.size()) != kMagic ||
      block[kTypeAt] != kPlainFile)
    return std::nullopt;
  const auto sum = octal(block.substr(kChecksumAt, 6));
  const auto size = octal(block.substr(kSizeAt, 11));
  if (!sum || !size || *sum != checksum(block.substr(0, kBlock))) return std::nullopt;
  const std::string_view name = block.substr(0, kNameBytes);
  return Entry{std::string(name.substr(0, name.find('\0'))), *size};
}

}  // namespace turnstile::tar
