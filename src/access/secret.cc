#include "access/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace turnstile::access {
namespace {

// What SHA256() of the library would look up anew for each call, which takes longer than the digest itself.
struct Hasher {
  EVP_MD* method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Hasher() {
    EVP_MD_CTX_free(context);
    EVP_MD_free(method);
  }
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Digest digest_of(std::string_view secret) {
  thread_local const Hasher hasher;
  Digest digest{};
  const bool done = EVP_DigestInit_ex2(hasher.context, hasher.method, nullptr) == 1 &&
                    EVP_DigestUpdate(hasher.context, secret.data(), secret.size()) == 1 &&
                    EVP_DigestFinal_ex(hasher.context, digest.data(), nullptr) == 1;
  TS_CHECK(done, "SHA-256 is there");
  return digest;
}

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = uint8_t(high << 4 | low);
  }
  return digest;
}

bool same_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void erase(std::string& secret) { OPENSSL_cleanse(secret.data(), secret.size()); }

std::optional<std::string_view> bearer_secret(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return std::nullopt;
  for (size_t i = 0; i < kScheme.size(); ++i)
    if ((authorization[i] | 0x20) != kScheme[i]) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  if (authorization.empty()) return std::nullopt;
  return authorization;
}

}  // namespace turnstile::access
