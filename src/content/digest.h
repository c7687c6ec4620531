// The name of a blob: which hash, and its value. Everything that becomes a path comes through here first.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "content/content_error.h"

namespace turnstile::content {

enum class Algorithm : uint8_t { sha256, sha512 };

constexpr std::string_view name_of(Algorithm algorithm) {
  return algorithm == Algorithm::sha256 ? "sha256" : "sha512";
}
constexpr size_t hex_digits(Algorithm algorithm) { return algorithm == Algorithm::sha256 ? 64 : 128; }

// "sha256:" and 64, or "sha512:" and 128 hexadecimal digits in lower case.
//
// Invariant: nothing else can be in it, so that "<algorithm>/<hex>" is a path inside the store whatever a
// caller sent. There is no way to make one but parse() and of().
class Digest {
 public:
  // Error invalid_argument for everything that is not a digest exactly.
  static Outcome<Digest> parse(std::string_view text);
  // From a finished hash, as raw bytes.
  static Digest of(Algorithm algorithm, std::string_view hash);

  Algorithm algorithm() const { return algorithm_; }
  const std::string& text() const { return text_; }
  std::string_view hex() const { return std::string_view(text_).substr(name_of(algorithm_).size() + 1); }

  friend bool operator==(const Digest& a, const Digest& b) { return a.text_ == b.text_; }
  friend auto operator<=>(const Digest& a, const Digest& b) { return a.text_ <=> b.text_; }

 private:
  Digest(Algorithm algorithm, std::string text) : algorithm_(algorithm), text_(std::move(text)) {}

  Algorithm algorithm_;
  std::string text_;
};

// The digest inside a containerd ref: "<namespace>/<number>/<kind>-<digest>" or "…@<digest>". None for refs
// of other kinds, whose digest is known only when they are committed.
std::optional<Digest> digest_in_ref(std::string_view ref);

}  // namespace turnstile::content
