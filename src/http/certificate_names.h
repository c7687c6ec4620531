// The names that a certificate was issued for, ours or a client's.
#pragma once

#include <string>
#include <vector>

struct x509_st;

namespace turnstile::http {

// In the order of the certificate; none: it has none of this kind.
std::vector<std::string> dns_names(const x509_st* certificate);
std::string common_name(const x509_st* certificate);

}  // namespace turnstile::http
