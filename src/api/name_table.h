// Finding one of a few known names, at compile time sorted by length: one look at the length, then a
// comparison or two. Both the fields of a request and the paths of the API are found this way.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace turnstile {

// Threads: immutable. Invariant: names of length n are at by_length_[starts_[n]] up to starts_[n + 1].
template <size_t Count>
class NameTable {
 public:
  static constexpr size_t kNotFound = Count;

  // find() gives a name's index in `names`.
  consteval explicit NameTable(const std::array<std::string_view, Count>& names) {
    for (size_t i = 0; i < Count; ++i) by_length_[i] = {names[i], uint8_t(i)};
    std::sort(by_length_.begin(), by_length_.end(), [](const Entry& a, const Entry& b) {
      return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
    });
    for (size_t length = 0, at = 0; length < starts_.size(); ++length) {
      while (at < Count && by_length_[at].name.size() < length) ++at;
      starts_[length] = uint8_t(at);
    }
  }

  constexpr size_t find(std::string_view name) const {
    if (name.size() > kLongest) return kNotFound;
    for (size_t at = starts_[name.size()]; at < starts_[name.size() + 1]; ++at)
      if (by_length_[at].name == name) return by_length_[at].index;
    return kNotFound;
  }

 private:
  static constexpr size_t kLongest = 30;
  static_assert(Count < 255);
  struct Entry {
    std::string_view name;
    uint8_t index = 0;
  };
  std::array<Entry, Count> by_length_{};
  std::array<uint8_t, kLongest + 2> starts_{};
};

}  // namespace turnstile
