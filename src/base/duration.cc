// See duration.h.
#include "base/duration.h"

#include <fmt/format.h>

#include <charconv>

namespace turnstile {
namespace {

struct Unit {
  std::string_view name;
  int64_t microseconds;
};
constexpr Unit kUnits[] = {{"us", 1},         {"ms", 1000},         {"s", 1'000'000},
                           {"m", 60'000'000}, {"h", 3'600'000'000}, {"d", 86'400'000'000}};

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration(0);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(size_t(end - text.data()));
  constexpr double kMost = 1e15;  // microseconds: thirty years
  for (const Unit& known : kUnits) {
    const double microseconds = number * double(known.microseconds);
    if (error == std::errc() && unit == known.name && number >= 0 && microseconds <= kMost)
      return Duration(int64_t(microseconds));
  }
  return fail(
      fmt::format("'{}' is not a duration; write a number with a unit: 500ms, 10s, 5m, 1h, or 0", text));
}

std::string show_duration(Duration duration) {
  for (size_t i = std::size(kUnits); i-- > 0;) {
    const Unit& unit = kUnits[i];
    if (duration.count() != 0 && duration.count() % unit.microseconds == 0)
      return fmt::format("{}{}", duration.count() / unit.microseconds, unit.name);
  }
  return "0";
}

}  // namespace turnstile
