// The Last-Event-ID with which a reader of a stream comes back.
//
// A file of its own because the server and the fake server of tests must understand it alike.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace turnstile {

// The header of that name, if it is one of our ids. Anything else cannot be known, which id 0 never is;
// nothing: there is no such header.
inline std::optional<uint64_t> parse_last_event_id(std::string_view text) {
  if (text.empty()) return std::nullopt;
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() ? id : 0;
}

}  // namespace turnstile
