// How values look to people: durations, ages, sizes, tables. Pure functions; `now` is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "turnstile/clock.h"

namespace turnstile::cli {

using Milliseconds = std::chrono::milliseconds;

// "500ms", "10s", "1.5m", "1h" or "0", up to a year.
Result<Milliseconds> parse_duration(std::string_view text);
// The two largest units: "850ms", "12s", "3m 20s", "2d 4h".
std::string show_duration(Milliseconds duration);

WallTime wall_now();
// How long ago; "-" when it is not known. Never negative: clocks of two machines differ.
std::string show_age(WallTime time, WallTime now);

std::string show_bytes(uint64_t count);  // "999", "1.5K", "3.0M": without a unit, for it may not be bytes
// "42% (1.2G of 2.9G)"; without a total: "1.2G"; nothing: "".
std::string show_progress(std::optional<uint64_t> done, std::optional<uint64_t> total);

// Control characters as spaces, so that a foreign text neither breaks a line nor drives the terminal; bytes
// that are no UTF-8 as U+FFFD.
std::string one_line(std::string_view text);
// At most `width` columns of it; the middle is left out, for digests differ at their ends.
std::string shortened(std::string_view text, size_t width);
// Its first characters, as many as have room in `width` columns.
std::string_view front_of(std::string_view text, size_t width);
// In columns of a terminal: East Asian wide characters and emoji take two, combining marks none.
size_t display_width(std::string_view utf8);

// Rows as aligned columns with two spaces between; the last column is not padded.
class Table {
 public:
  explicit Table(std::vector<std::string> heads) { add(std::move(heads)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  size_t size() const { return rows_.size() - 1; }
  std::string text() const;  // ends with a line end

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace turnstile::cli
