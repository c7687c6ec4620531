#include "cli/certificates.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>

namespace turnstile::cli {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

constexpr long kSecondsADay = 24 * 60 * 60;
// Clocks of machines differ.
constexpr long kBefore = 60 * 60;

std::unexpected<Error> failed(std::string_view what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return fail(fmt::format("{}: {}", what, reason ? reason : "OpenSSL does not say why"));
}

Bio reading(const std::string& text) { return {BIO_new_mem_buf(text.data(), int(text.size())), &BIO_free}; }

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? std::string(data, size_t(size)) : std::string();
}

Result<Pair> as_pem(X509* certificate, EVP_PKEY* key) {
  const Bio first(BIO_new(BIO_s_mem()), &BIO_free), second(BIO_new(BIO_s_mem()), &BIO_free);
  if (!first || !second || PEM_write_bio_X509(first.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(second.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return failed("cannot write a certificate");
  return Pair{text_of(first), text_of(second)};
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> ignored;
  return ::inet_pton(AF_INET, name.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), ignored.data()) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), &X509_EXTENSION_free);
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// A number that no other certificate has: as random ones are, of 127 bits.
bool set_number(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), int(bytes.size())) != 1) return false;
  bytes[0] &= 0x7f;
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      BN_bin2bn(bytes.data(), int(bytes.size()), nullptr), &BN_free);
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_name(X509_NAME* subject, const std::string& name) {
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), int(name.size()),
                                    -1, 0) == 1;
}

// All but extensions and signature.
Certificate begin(const std::string& name, EVP_PKEY* key, const X509* issuer, int days) {
  Certificate made(X509_new(), &X509_free);
  X509* const it = made.get();
  const bool well = it && X509_set_version(it, X509_VERSION_3) == 1 && set_number(it) &&
                    X509_gmtime_adj(X509_getm_notBefore(it), -kBefore) &&
                    X509_gmtime_adj(X509_getm_notAfter(it), days * kSecondsADay) &&
                    X509_set_pubkey(it, key) == 1 && set_name(X509_get_subject_name(it), name) &&
                    X509_set_issuer_name(it, X509_get_subject_name(issuer ? issuer : it)) == 1;
  if (!well) made.reset();
  return made;
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names)
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", is_address(name) ? "IP" : "DNS", name);
  return out;
}

}  // namespace

void Authority::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }
void Authority::Free::operator()(x509_st* certificate) const { X509_free(certificate); }
Authority::Authority(Authority&&) noexcept = default;
Authority& Authority::operator=(Authority&&) noexcept = default;
Authority::~Authority() = default;

Result<Authority> Authority::make(const std::string& name, int days) {
  Authority made;
  made.key_.reset(EVP_EC_gen("P-256"));
  if (!made.key_) return failed("cannot make a key");
  made.certificate_.reset(begin(name, made.key_.get(), nullptr, days).release());
  X509* const it = made.certificate_.get();
  if (!it || !add_extension(it, it, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(it, it, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(it, it, NID_subject_key_identifier, "hash") ||
      X509_sign(it, made.key_.get(), EVP_sha256()) <= 0)
    return failed("cannot make a certificate authority");
  Result<Pair> pem = as_pem(it, made.key_.get());
  if (!pem) return std::unexpected(pem.error());
  made.pem_ = *std::move(pem);
  return made;
}

Result<Authority> Authority::read(const Pair& pem) {
  Authority made;
  made.pem_ = pem;
  made.key_.reset(PEM_read_bio_PrivateKey(reading(pem.key).get(), nullptr, nullptr, nullptr));
  made.certificate_.reset(PEM_read_bio_X509(reading(pem.certificate).get(), nullptr, nullptr, nullptr));
  if (!made.key_ || !made.certificate_ ||
      X509_check_private_key(made.certificate_.get(), made.key_.get()) != 1)
    return failed("that is no certificate authority with its key");
  return made;
}

Result<Pair> Authority::issue(const std::vector<std::string>& names, CertificateUse use, int days) const {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  if (!key) return failed("cannot make a key");
  const Certificate made = begin(names.front(), key.get(), certificate_.get(), days);
  X509* const it = made.get();
  X509* const by = certificate_.get();
  const char* const purpose = use == CertificateUse::server ? "serverAuth" : "clientAuth";
  if (!it || !add_extension(it, by, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(it, by, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(it, by, NID_ext_key_usage, purpose) ||
      !add_extension(it, by, NID_subject_alt_name, alternative_names(names)) ||
      !add_extension(it, by, NID_subject_key_identifier, "hash") ||
      !add_extension(it, by, NID_authority_key_identifier, "keyid:always") ||
      X509_sign(it, key_.get(), EVP_sha256()) <= 0)
    return failed(fmt::format("cannot issue a certificate for {}", names.front()));
  return as_pem(it, key.get());
}

Result<std::vector<std::string>> names_in(const std::string& certificate) {
  const Certificate it(PEM_read_bio_X509(reading(certificate).get(), nullptr, nullptr, nullptr), &X509_free);
  if (!it) return failed("that is no certificate");
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> found(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(it.get(), NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  std::vector<std::string> names;
  for (int i = 0; found && i < sk_GENERAL_NAME_num(found.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found.get(), i);
    if (name->type == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         size_t(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      std::array<char, INET6_ADDRSTRLEN> text{};
      const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
      if (::inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text.data(), text.size()))
        names.emplace_back(text.data());
    }
  }
  if (names.empty()) return fail("that certificate has no names");
  return names;
}

}  // namespace turnstile::cli
