// Digests, and the digests inside of containerd's refs. What must hold:
// - a digest that is accepted is the text that was given, and "<algorithm>/<hex>" is two plain names of a
// path;
// - the same digest made from the bytes of a hash is equal;
// - a digest found in a ref stands at its end, behind a separator.
#include "content/digest.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

using content::Digest;

int value_of(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

void check(const Digest& digest, std::string_view text) {
  TS_CHECK(digest.text() == text, "a digest is the text that was given");
  const std::string_view hex = digest.hex();
  TS_CHECK(hex.size() == content::hex_digits(digest.algorithm()),
           "a digest is as long as its algorithm says");
  TS_CHECK(hex.find_first_not_of("0123456789abcdef") == hex.npos, "a digest is a plain name");
  std::string hash;
  for (size_t i = 0; i < hex.size(); i += 2) hash += char(value_of(hex[i]) * 16 + value_of(hex[i + 1]));
  TS_CHECK(Digest::of(digest.algorithm(), hash) == digest, "a hash and its text are the same digest");
}

}  // namespace

void run(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const auto parsed = Digest::parse(copy.view());
  if (parsed) check(*parsed, bytes);
  if (!parsed) TS_CHECK(parsed.error().message.size() < 300, "an error does not repeat all that was sent");
  const auto found = content::digest_in_ref(copy.view());
  if (!found) return;
  check(*found, found->text());
  TS_CHECK(bytes.ends_with(found->text()) && bytes.size() > found->text().size(),
           "the digest of a ref is its end");
  const char before = bytes[bytes.size() - found->text().size() - 1];
  TS_CHECK(before == '-' || before == '@', "the digest of a ref is not the tail of a longer word");
}

}  // namespace turnstile::fuzz
