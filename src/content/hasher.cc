// OpenSSL's EVP interface, wrapped: its failures here could only be our own misuse or no memory.
#include "content/hasher.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace turnstile::content {
namespace {

// Fetched once: looking an algorithm up by name costs more than hashing a small blob.
const EVP_MD* method_of(Algorithm algorithm) {
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  static const EVP_MD* const sha512 = EVP_MD_fetch(nullptr, "SHA512", nullptr);
  return algorithm == Algorithm::sha256 ? sha256 : sha512;
}

}  // namespace

void Hasher::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Hasher::Hasher(Algorithm algorithm)
    : algorithm_(algorithm), context_(EVP_MD_CTX_new()), copy_(EVP_MD_CTX_new()) {
  reset();
}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::reset() {
  TS_CHECK(EVP_DigestInit_ex(context_.get(), method_of(algorithm_), nullptr) == 1, "OpenSSL has SHA-2");
}

void Hasher::update(std::string_view bytes) {
  TS_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "hashing cannot fail");
}

Digest Hasher::digest() const {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  TS_CHECK(EVP_MD_CTX_copy_ex(copy_.get(), context_.get()) == 1 &&
               EVP_DigestFinal_ex(copy_.get(), hash, &size) == 1,
           "the state of a hash can be copied and finished");
  return Digest::of(algorithm_, std::string_view(reinterpret_cast<const char*>(hash), size));
}

}  // namespace turnstile::content
