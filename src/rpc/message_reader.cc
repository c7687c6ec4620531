// See message_reader.h.
#include "rpc/message_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace turnstile::rpc {

std::array<char, kPrefixSize> prefix_of(size_t size) {
  return {0, char(size >> 24), char(size >> 16), char(size >> 8), char(size)};
}

bool MessageReader::read_prefix(std::string_view& bytes) {
  const size_t taken = std::min(bytes.size(), kPrefixSize - prefix_size_);
  std::copy_n(bytes.begin(), taken, prefix_.begin() + prefix_size_);
  bytes.remove_prefix(taken);
  prefix_size_ += taken;
  if (prefix_size_ < kPrefixSize) return false;
  wanted_ = 0;
  for (size_t i = 1; i < kPrefixSize; ++i) wanted_ = wanted_ << 8 | uint8_t(prefix_[i]);
  if (prefix_[0] != 0)
    error_ = Status{Code::unimplemented, "compressed messages are not taken; send them as they are"};
  else if (wanted_ > max_message_)
    error_ = Status{Code::resource_exhausted,
                    fmt::format("a message of {} bytes; at most {} are taken", wanted_, max_message_)};
  if (error_) return false;
  message_ = std::exchange(message_memory_, {});
  message_.clear();
  message_.reserve(wanted_);
  return true;
}

std::optional<std::string> MessageReader::next(std::string_view& bytes) {
  if (error_) return std::nullopt;
  if (prefix_size_ < kPrefixSize && (bytes.empty() || !read_prefix(bytes))) return std::nullopt;
  const size_t taken = std::min(bytes.size(), wanted_ - message_.size());
  message_.append(bytes.substr(0, taken));
  bytes.remove_prefix(taken);
  if (message_.size() < wanted_) return std::nullopt;
  prefix_size_ = 0;
  return std::exchange(message_, {});
}

}  // namespace turnstile::rpc
