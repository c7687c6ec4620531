// gRPC's framing: one byte that says whether a message is compressed, four with its length, the message.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "rpc/call.h"

namespace turnstile::rpc {

constexpr size_t kPrefixSize = 5;

// The five bytes in front of a message of this size.
std::array<char, kPrefixSize> prefix_of(size_t size);

// Cuts messages out of a stream of bytes that comes in pieces of any size.
class MessageReader {
 public:
  explicit MessageReader(size_t max_message) : max_message_(max_message) {}

  // Takes bytes off the front of `bytes` until a message is complete or none are left.
  std::optional<std::string> next(std::string_view& bytes);
  // What was sent is no message that we take; next() gives nothing more.
  const std::optional<Status>& error() const { return error_; }
  bool in_the_middle() const { return prefix_size_ > 0; }
  // Memory of an earlier message, for a later one.
  void recycle(std::string memory) { message_memory_ = std::move(memory); }

 private:
  bool read_prefix(std::string_view& bytes);

  const size_t max_message_;
  std::array<char, kPrefixSize> prefix_{};
  size_t prefix_size_ = 0;  // how much of it is there
  size_t wanted_ = 0;       // of the message, when the prefix is whole
  std::string message_, message_memory_;
  std::optional<Status> error_;
};

}  // namespace turnstile::rpc
