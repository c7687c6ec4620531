#include "access/credentials.h"

#include <openssl/crypto.h>

#include "access/secret.h"

namespace turnstile::access {

std::shared_ptr<const Credentials> Credentials::of_certificates() {
  auto made = std::make_shared<Credentials>();
  made->certificates_.push_back({NamePattern::of("*"), Principal{}});
  return made;
}

PrincipalPtr Credentials::find_secret(std::string_view secret) const {
  return find_digest(digest_of(secret));
}

// All of them are looked at, each whole, and which one it was is kept without a branch.
PrincipalPtr Credentials::find_digest(const Digest& digest) const {
  size_t found = 0;  // its place, from 1
  for (size_t i = 0; i < secrets_.size(); ++i) {
    const auto difference = uint32_t(CRYPTO_memcmp(secrets_[i].digest.data(), digest.data(), digest.size()));
    const size_t equal = (uint64_t(difference) - 1) >> 63;  // 1 or 0
    found |= (0 - equal) & (i + 1);
  }
  return found == 0 ? nullptr : secrets_[found - 1].who;
}

PrincipalPtr Credentials::find_certificate(std::string_view name) const {
  for (const Certificate& each : certificates_) {
    if (!each.name.matches(name)) continue;
    Principal who = each.who;
    who.name = name;
    who.proof = CertificateName{who.name};
    if (who.role == Role::client && who.nodes.empty()) who.nodes.push_back({who.name, false});
    return std::make_shared<const Principal>(std::move(who));
  }
  return nullptr;
}

PrincipalPtr Credentials::find_user(uint32_t uid) const {
  for (const User& each : users_)
    if (each.uid == uid) return each.who;
  if (!users_.empty()) return nullptr;
  return std::make_shared<const Principal>(
      Principal{"uid:" + std::to_string(uid), Role::admin, {}, {}, UnixUser{uid}});
}

PrincipalPtr Credentials::find(const Proof& proof) const {
  if (const auto* digest = std::get_if<Digest>(&proof)) return find_digest(*digest);
  if (const auto* certificate = std::get_if<CertificateName>(&proof))
    return find_certificate(certificate->text);
  return find_user(std::get<UnixUser>(proof).uid);
}

}  // namespace turnstile::access
