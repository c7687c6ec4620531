#include "cli/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/duration.h"

namespace turnstile::cli {
namespace {

struct Unit {
  std::string_view name;
  int64_t ms;
};
constexpr std::array kUnits = {Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                               Unit{"s", 1'000}};

bool continues_character(char c) { return (uint8_t(c) & 0xC0) == 0x80; }

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

std::optional<WallTime> parse_time(std::string_view rfc3339) {
  const std::string text(rfc3339);  // sscanf wants its end
  int year, month, day, hour, minute, used = 0;
  double second;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &year, &month, &day, &hour, &minute, &second,
                  &used) != 6 ||
      size_t(used) != text.size()) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(unsigned(month)),
                                         std::chrono::day(unsigned(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second >= 61) return std::nullopt;
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         Milliseconds(int64_t(second * 1000));
}

WallTime wall_now() { return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now()); }

std::string show_age(std::string_view rfc3339, WallTime now) {
  const std::optional<WallTime> time = parse_time(rfc3339);
  return time ? show_duration(std::max(now - *time, Milliseconds(0))) : "-";
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
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return uint8_t(c) < 0x20 || c == 0x7F; }, ' ');
  return out;
}

size_t display_width(std::string_view utf8) {
  return size_t(std::ranges::count_if(utf8, [](char c) { return !continues_character(c); }));
}

std::string_view front_of(std::string_view text, size_t width) {
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && seen++ == width) break;
  }
  return text.substr(0, end);
}

std::string shortened(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  const size_t front = width / 2, back = width - front - 1;
  size_t end = text.size();
  for (size_t seen = 0; end > 0 && seen < back;) {
    if (!continues_character(text[--end])) ++seen;
  }
  return fmt::format("{}…{}", front_of(text, front), text.substr(end));
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
