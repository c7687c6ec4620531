// Just enough of the tar format (POSIX ustar) for backups: plain files, so that `tar` can unpack one by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace turnstile::tar {

inline constexpr size_t kBlock = 512;
// Eleven octal digits.
inline constexpr uint64_t kMostBytes = (uint64_t(1) << 33) - 1;

// How many bytes of zeros follow a file of this size.
constexpr size_t padding(uint64_t size) { return size_t((kBlock - size % kBlock) % kBlock); }

// The block before a file. `name` has at most 99 bytes, `size` is at most kMostBytes.
std::string make_header(std::string_view name, uint64_t size, int64_t seconds_since_1970);

struct Entry {
  std::string name;
  uint64_t size = 0;
};
// Nothing where the block is damaged, or is not the header of a plain file.
std::optional<Entry> parse_header(std::string_view block);

}  // namespace turnstile::tar
