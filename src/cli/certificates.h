// A certificate authority of one's own, and certificates of it: what `turnstile init` makes.
//
// The one file (with certificates.cc) of this folder that knows OpenSSL's certificates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

struct evp_pkey_st;
struct x509_st;

namespace turnstile::cli {

// A key and the certificate for it, as PEM. The key is ECDSA's on P-256: it signs in a tenth of RSA's time.
struct Pair {
  std::string certificate, key;
};

// What a certificate is for.
enum class CertificateUse { server, node };

// Signs certificates. Threads: one. Time: the system's.
class Authority {
 public:
  static Result<Authority> make(const std::string& name, int days);
  // As pair() has given it.
  static Result<Authority> read(const Pair& pem);

  Authority(Authority&&) noexcept;
  Authority& operator=(Authority&&) noexcept;
  ~Authority();

  const Pair& pair() const { return pem_; }
  // `names`: DNS names and IP addresses, the first of them also as common name. A node's is a name and no
  // address.
  Result<Pair> issue(const std::vector<std::string>& names, CertificateUse use, int days) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
    void operator()(x509_st* certificate) const;
  };
  Authority() = default;

  Pair pem_;
  std::unique_ptr<evp_pkey_st, Free> key_;
  std::unique_ptr<x509_st, Free> certificate_;
};

// The names that a certificate (PEM) was issued for, in order: to issue another one for the same.
Result<std::vector<std::string>> names_in(const std::string& certificate);

}  // namespace turnstile::cli
