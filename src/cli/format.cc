#include "cli/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/duration.h"
#include "base/utf8.h"

namespace turnstile::cli {
namespace {

struct Unit {
  std::string_view name;
  int64_t ms;
};
constexpr std::array kUnits = {Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                               Unit{"s", 1'000}};

struct Range {
  char32_t first, last;
};
// Of Unicode's East Asian Width: wide and fullwidth, with the emoji among them, in large pieces.
constexpr std::array kWide = {
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},   Range{0x25FD, 0x25FE},
    Range{0x2614, 0x2615},   Range{0x2648, 0x2653},   Range{0x26AA, 0x26AB},   Range{0x26BD, 0x26BE},
    Range{0x2705, 0x2705},   Range{0x270A, 0x270B},   Range{0x2728, 0x2728},   Range{0x274C, 0x274C},
    Range{0x2753, 0x2757},   Range{0x2795, 0x2797},   Range{0x2B1B, 0x2B1C},   Range{0x2E80, 0x303E},
    Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},
    Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},
    Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x16FE0, 0x18CFF}, Range{0x1B000, 0x1B2FF},
    Range{0x1F004, 0x1F004}, Range{0x1F0CF, 0x1F0CF}, Range{0x1F18E, 0x1F19A}, Range{0x1F200, 0x1F320},
    Range{0x1F32D, 0x1F3F0}, Range{0x1F3F4, 0x1F64F}, Range{0x1F680, 0x1F6FF}, Range{0x1F7E0, 0x1F7EB},
    Range{0x1F90C, 0x1F9FF}, Range{0x1FA70, 0x1FAFF}, Range{0x20000, 0x3FFFD}};
// Marks that stand on the character before them, joiners and other things without a place of their own.
constexpr std::array kNothing = {Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD},
                                 Range{0x0610, 0x061A}, Range{0x064B, 0x065F}, Range{0x1AB0, 0x1AFF},
                                 Range{0x1DC0, 0x1DFF}, Range{0x200B, 0x200F}, Range{0x202A, 0x202E},
                                 Range{0x2060, 0x2064}, Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F},
                                 Range{0xFE20, 0xFE2F}, Range{0xFEFF, 0xFEFF}, Range{0xE0100, 0xE01EF}};

template <size_t n>
bool within(const std::array<Range, n>& ranges, char32_t code) {
  return std::ranges::any_of(ranges,
                             [&](const Range& range) { return code >= range.first && code <= range.last; });
}

size_t columns_of(char32_t code) {
  if (code < 0x300) return 1;
  return within(kNothing, code) ? 0 : within(kWide, code) ? 2 : 1;
}

// Takes the first character away, and tells how many columns it has.
size_t take_columns(std::string_view& text) {
  const Utf8Character character = take_character(text);
  return character.valid ? columns_of(character.code) : 1;
}

}  // namespace

Result<Milliseconds> parse_duration(std::string_view text) {
  const Result<Duration> parsed = turnstile::parse_duration(one_line(text));
  if (!parsed) return std::unexpected(parsed.error());
  return std::chrono::duration_cast<Milliseconds>(*parsed);
}

std::string show_duration(Milliseconds duration) {
  const int64_t ms = std::max<int64_t>(0, duration.count());
  if (ms < 1'000) return fmt::format("{}ms", ms);
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if (ms < kUnits[i].ms) continue;
    const int64_t rest = i + 1 < kUnits.size() ? ms % kUnits[i].ms / kUnits[i + 1].ms : 0;
    const std::string first = fmt::format("{}{}", ms / kUnits[i].ms, kUnits[i].name);
    return rest == 0 ? first : fmt::format("{} {}{}", first, rest, kUnits[i + 1].name);
  }
  return "0";
}

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

std::string show_age(WallTime time, WallTime now) {
  if (time == WallTime{}) return "-";
  return show_duration(std::chrono::duration_cast<Milliseconds>(std::max(now - time, WallTime::duration(0))));
}

std::string show_bytes(uint64_t count) {
  if (count < 1'000) return fmt::format("{}", count);
  constexpr std::string_view kLetters = "KMGTPE";
  double value = double(count);
  size_t letter = 0;
  for (value /= 1'000; value >= 999.95 && letter + 1 < kLetters.size(); ++letter) value /= 1'000;
  return fmt::format("{:.1f}{}", value, kLetters[letter]);
}

std::string show_progress(std::optional<uint64_t> done, std::optional<uint64_t> total) {
  if (!done) return "";
  if (!total || *total == 0) return show_bytes(*done);
  const double percent = std::min(100.0, 100.0 * double(*done) / double(*total));
  return fmt::format("{:.0f}% ({} of {})", percent, show_bytes(*done), show_bytes(*total));
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view from = text;
    const Utf8Character character = take_character(text);
    const bool controls = character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0);
    if (!character.valid)
      out += kReplacement;
    else if (controls)
      out += ' ';
    else
      out += from.substr(0, from.size() - text.size());
  }
  return out;
}

size_t display_width(std::string_view utf8) {
  size_t width = 0;
  while (!utf8.empty()) width += take_columns(utf8);
  return width;
}

std::string_view front_of(std::string_view text, size_t width) {
  std::string_view rest = text;
  for (size_t used = 0; !rest.empty();) {
    std::string_view behind = rest;
    used += take_columns(behind);
    if (used > width) break;
    rest = behind;
  }
  return text.substr(0, text.size() - rest.size());
}

std::string shortened(std::string_view text, size_t width) {
  const size_t all = display_width(text);
  if (all <= width) return std::string(text);
  if (width == 0) return "";
  const std::string_view front = front_of(text, width / 2);
  std::string_view back = text;
  for (size_t left = all, room = width - width / 2 - 1; left > room;) left -= take_columns(back);
  return fmt::format("{}…{}", front, back);
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - display_width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace turnstile::cli
