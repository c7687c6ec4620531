#include "cli/operation_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "turnstile/operations.h"

namespace turnstile::cli {
namespace {

constexpr std::array<std::string_view, 4> kKnown = {operations::kPull, operations::kUpdate,
                                                    operations::kDelete, operations::kOnce};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return out;
}

// One character more, less, other, or two neighbours the wrong way round.
bool differ_by_one(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const size_t same = size_t(std::ranges::mismatch(a, b).in1 - a.begin());
  const std::string_view left = a.substr(same), right = b.substr(same);
  if (left.size() < right.size()) return left == right.substr(1);
  if (left.empty()) return false;
  const bool swapped = left.size() > 1 && left[0] == right[1] && left[1] == right[0];
  return left.substr(1) == right.substr(1) || (swapped && left.substr(2) == right.substr(2));
}

}  // namespace

bool is_known_operation(std::string_view type) { return std::ranges::count(kKnown, type) > 0; }

std::string_view meant_operation(std::string_view type) {
  if (is_known_operation(type)) return {};
  const std::string typed = lower(type);
  for (std::string_view known : kKnown)
    if (typed == known || differ_by_one(typed, known)) return known;
  return {};
}

std::string hint_about(std::string_view type, std::string_view everybody) {
  const std::string_view meant = meant_operation(type);
  if (meant.empty()) return {};
  return fmt::format(
      "\"{}\" is not \"{}\": unless the server has a rule for it, it is a plain mutex, and everybody {}, one "
      "after the other",
      type, meant, everybody);
}

std::string hint_after_waiting(std::string_view type) {
  if (is_known_operation(type)) return {};
  return fmt::format(
      "; others ran it before, because \"{0}\" is a plain mutex. To make the waiters skip, use `turnstile "
      "once`, "
      "or start the server with --operation {0}:on_success=share",
      type);
}

}  // namespace turnstile::cli
