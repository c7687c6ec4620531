// Parsing of digests: strict, because paths are built from them.
#include "content/digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace turnstile::content {
namespace {

std::optional<Algorithm> algorithm_of(std::string_view text) {
  for (Algorithm algorithm : {Algorithm::sha256, Algorithm::sha512}) {
    const std::string_view name = name_of(algorithm);
    if (text.size() == name.size() + 1 + hex_digits(algorithm) && text.starts_with(name) &&
        text[name.size()] == ':')
      return algorithm;
  }
  return std::nullopt;
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// What came over the wire, cut and without control characters, for an error message.
std::string printable(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 100)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 100 ? out + "..." : out;
}

}  // namespace

Outcome<Digest> Digest::parse(std::string_view text) {
  const std::optional<Algorithm> algorithm = algorithm_of(text);
  if (!algorithm || !std::ranges::all_of(text.substr(name_of(*algorithm).size() + 1), is_hex))
    return fail(
        ErrorClass::invalid_argument,
        fmt::format("'{}' is not a digest: expected sha256:<64 hex> or sha512:<128 hex>", printable(text)));
  return Digest(*algorithm, std::string(text));
}

Digest Digest::of(Algorithm algorithm, std::string_view hash) {
  TS_CHECK(hash.size() * 2 == hex_digits(algorithm), "a hash has the length of its algorithm");
  std::string text(name_of(algorithm));
  text += ':';
  for (char byte : hash) {
    constexpr std::string_view kHex = "0123456789abcdef";
    text += kHex[uint8_t(byte) >> 4];
    text += kHex[uint8_t(byte) & 15];
  }
  return Digest(algorithm, std::move(text));
}

std::optional<Digest> digest_in_ref(std::string_view ref) {
  // The digest stands at the end; what is before it must be separated, so that no tail of a longer word
  // counts.
  for (Algorithm algorithm : {Algorithm::sha256, Algorithm::sha512}) {
    const size_t length = name_of(algorithm).size() + 1 + hex_digits(algorithm);
    if (ref.size() <= length) continue;
    const char before = ref[ref.size() - length - 1];
    if (before != '-' && before != '@') continue;
    if (Outcome<Digest> digest = Digest::parse(ref.substr(ref.size() - length))) return *digest;
  }
  return std::nullopt;
}

}  // namespace turnstile::content
