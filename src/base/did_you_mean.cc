#include "base/did_you_mean.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace turnstile {
namespace {

// How many letters must be changed, added or taken away, or change places with the next.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& words) {
  const auto nearest =
      std::ranges::min_element(words, {}, [&](const std::string& other) { return distance(word, other); });
  if (nearest == words.end() || distance(word, *nearest) > std::max<size_t>(1, word.size() / 3)) return "";
  return "; did you mean " + *nearest + "?";
}

}  // namespace turnstile
