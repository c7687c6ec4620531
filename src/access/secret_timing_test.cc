// A wrong secret takes as long as a right one, whatever is right about it and wherever it stands.
//
// Statistics, not single times: the kinds are measured in turn, in small groups, and the medians of thousands
// of groups are compared, so that whatever else the machine does hits all of them alike.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "access/credentials.h"
#include "access/secret.h"

namespace turnstile::access {
namespace {

constexpr size_t kEntries = 200, kGroup = 8, kGroups = 3000;

std::string secret(size_t number) { return fmt::format("ts_{:043}", number); }

CredentialsPtr make_credentials() {
  std::string text;
  for (size_t i = 0; i < kEntries; ++i) {
    std::string hex;
    for (const uint8_t byte : digest_of(secret(i))) hex += fmt::format("{:02x}", byte);
    text +=
        fmt::format("[[credential]]\nname = \"n{}\"\nrole = \"client\"\nsecret_sha256 = \"{}\"\n", i, hex);
  }
  return *Credentials::parse(text, "test");
}

// A secret whose digest begins like that of an entry: by chance, a few bits of it.
std::string nearly_right(const Digest& wanted) {
  for (size_t i = 0;; ++i) {
    const Digest digest = digest_of(secret(1'000'000 + i));
    if (digest[0] == wanted[0] && (digest[1] >> 4) == (wanted[1] >> 4)) return secret(1'000'000 + i);
  }
}

using Times = std::vector<double>;

double median(Times times) {
  std::nth_element(times.begin(), times.begin() + ptrdiff_t(times.size() / 2), times.end());
  return times[times.size() / 2];
}

std::vector<double> medians(const Credentials& known, const std::vector<std::string>& kinds) {
  std::vector<Times> times(kinds.size());
  size_t found = 0;
  for (size_t group = 0; group < kGroups; ++group) {
    for (size_t k = 0; k < kinds.size(); ++k) {
      const size_t kind = (k + group) % kinds.size();  // none always follows the same
      const auto begin = std::chrono::steady_clock::now();
      for (size_t i = 0; i < kGroup; ++i) found += known.find_secret(kinds[kind]) != nullptr;
      times[kind].push_back(
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  EXPECT_EQ(found, 3 * kGroup * kGroups);
  std::vector<double> result;
  for (Times& each : times) result.push_back(median(std::move(each)) / kGroup);
  return result;
}

TEST(SecretTiming, WrongTakesAsLongAsRightWhereverItStands) {
  const CredentialsPtr known = make_credentials();
  const std::vector<std::string> kinds{secret(0), secret(kEntries / 2), secret(kEntries - 1),
                                       secret(kEntries + 7), nearly_right(digest_of(secret(0)))};
  // A machine that stalls may spoil one measurement; a comparison that ends early spoils all.
  double worst = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::vector<double> found = medians(*known, kinds);
    const auto [least, most] = std::minmax_element(found.begin(), found.end());
    worst = *most / *least;
    RecordProperty("nanoseconds", fmt::format("{:.0f}", fmt::join(found, " ")));
    fmt::print("first {:.0f} ns, middle {:.0f} ns, last {:.0f} ns, wrong {:.0f} ns, nearly right {:.0f} ns\n",
               found[0], found[1], found[2], found[3], found[4]);
    if (worst < 1.05) return;
  }
  FAIL() << "some take " << worst << " times as long as others";
}

}  // namespace
}  // namespace turnstile::access
