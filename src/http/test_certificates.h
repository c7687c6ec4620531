// Certificates for the tests of this folder: made anew in every run, kept in a folder of their own.
#pragma once

#include <string>

#include "http/tls_context.h"

namespace turnstile::http {

// A CA, a server's certificate for 127.0.0.1 and whatever clients a test wants.
class TestCertificates {
 public:
  TestCertificates();
  ~TestCertificates();
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;

  // For a server; with `ask`, clients are asked for certificates of this CA.
  TlsFiles server(bool ask = false) const;
  const std::string& folder() const { return folder_; }
  std::string ca() const { return folder_ + "/ca.crt"; }

  struct Client {
    std::string common_name;
    std::string dns_name = {};  // empty: it has none
    long valid_seconds = 3600;
    bool foreign = false;  // signed by itself
  };
  // The files NAME.crt and NAME.key in the folder.
  void issue(const std::string& name, const Client& client) const;
  // Another certificate and key for the server, in the same files.
  void renew_server() const;

 private:
  std::string folder_;
};

}  // namespace turnstile::http
