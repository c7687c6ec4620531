#include "cli/secret.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>

#include "base/check.h"

namespace turnstile::cli {

Result<std::string> new_secret() {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<unsigned char, 33> bytes{};  // the last one is not random, and what it would give is not used
  if (RAND_bytes(bytes.data(), int(bytes.size() - 1)) != 1)
    return fail("the system has no randomness to give");
  std::string text = "ts_";
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const unsigned group = unsigned(bytes[at]) << 16 | unsigned(bytes[at + 1]) << 8 | bytes[at + 2];
    for (const int shift : {18, 12, 6, 0}) text += kDigits[group >> shift & 63];
  }
  text.pop_back();
  return text;
}

std::string sha256_of(std::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  TS_CHECK(EVP_Digest(secret.data(), secret.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
           "OpenSSL knows SHA-256");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace turnstile::cli
