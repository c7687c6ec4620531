#include "http/test_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/check.h"

namespace turnstile::http {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using File = std::unique_ptr<FILE, decltype(&std::fclose)>;

File open(const std::string& path, const char* mode) {
  return File(std::fopen(path.c_str(), mode), &std::fclose);
}

void add(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  TS_CHECK(extension && X509_add_ext(certificate, extension, -1) == 1, "a test's certificate can be made");
  X509_EXTENSION_free(extension);
}

// Writes PATH.crt and PATH.key. Without an issuer's path it is signed by itself.
void write(const std::string& path, const std::string& name, const std::string& names, const char* usage,
           long seconds, const std::string& issuer_path) {
  static long number = 1000;
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate made(X509_new(), &X509_free);
  X509* const it = made.get();
  Key issuer_key(nullptr, &EVP_PKEY_free);
  Certificate issuer(nullptr, &X509_free);
  if (!issuer_path.empty()) {
    issuer_key.reset(PEM_read_PrivateKey(open(issuer_path + ".key", "r").get(), nullptr, nullptr, nullptr));
    issuer.reset(PEM_read_X509(open(issuer_path + ".crt", "r").get(), nullptr, nullptr, nullptr));
  }
  X509_set_version(it, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(it), ++number);
  X509_gmtime_adj(X509_getm_notBefore(it), -7200);
  X509_gmtime_adj(X509_getm_notAfter(it), seconds);
  X509_set_pubkey(it, key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(it), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(it, X509_get_subject_name(issuer ? issuer.get() : it));
  X509* const by = issuer ? issuer.get() : it;
  if (!usage) add(it, by, NID_basic_constraints, "critical,CA:TRUE");
  if (usage) add(it, by, NID_ext_key_usage, usage);
  if (!names.empty()) add(it, by, NID_subject_alt_name, names);
  TS_CHECK(X509_sign(it, issuer_key ? issuer_key.get() : key.get(), EVP_sha256()) > 0,
           "a certificate can be signed");
  PEM_write_X509(open(path + ".crt", "w").get(), it);
  PEM_write_PrivateKey(open(path + ".key", "w").get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::filesystem::permissions(path + ".key",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace

TestCertificates::TestCertificates() {
  char name[] = "/tmp/turnstile-tls-XXXXXX";
  folder_ = ::mkdtemp(name);
  write(folder_ + "/ca", "Test CA", "", nullptr, 3600, "");
  renew_server();
}

TestCertificates::~TestCertificates() { std::filesystem::remove_all(folder_); }

TlsFiles TestCertificates::server(bool ask) const {
  return {
      .certificate = folder_ + "/server.crt", .key = folder_ + "/server.key", .client_ca = ask ? ca() : ""};
}

void TestCertificates::issue(const std::string& name, const Client& client) const {
  write(folder_ + "/" + name, client.common_name, client.dns_name.empty() ? "" : "DNS:" + client.dns_name,
        "clientAuth", client.valid_seconds, client.foreign ? "" : folder_ + "/ca");
}

void TestCertificates::renew_server() const {
  write(folder_ + "/server", "server", "IP:127.0.0.1,DNS:localhost", "serverAuth", 3600, folder_ + "/ca");
}

}  // namespace turnstile::http
