// The credentials file: who is known here, by which secret, certificate or user, and for what.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/principal.h"
#include "base/error.h"

namespace turnstile::access {

// The number of a user of this machine, by name.
using FindUser = std::function<std::optional<uint32_t>(const std::string& name)>;
std::optional<uint32_t> user_of_this_machine(const std::string& name);

// One reading of the file. Immutable, so that a loop can go on with the old one until it has the new one.
// What for: to find who asks. Not its job: what he may do (may.h). Threads: any.
class Credentials {
 public:
  // The error is one line: file, line, what is wrong.
  static Result<std::shared_ptr<const Credentials>> read(const std::string& path);
  static Result<std::shared_ptr<const Credentials>> parse(std::string_view text, const std::string& path,
                                                          const FindUser& find_user = user_of_this_machine);
  // Where there is no file, but clients show certificates: each is a client of its own name.
  static std::shared_ptr<const Credentials> of_certificates();

  // Null: nobody that is known here. A secret takes as long to be found as not to be, wherever it stands.
  PrincipalPtr find_secret(std::string_view secret) const;
  PrincipalPtr find_certificate(std::string_view name) const;
  PrincipalPtr find_user(uint32_t uid) const;
  // Who has been found before, perhaps in another reading of the file.
  PrincipalPtr find(const Proof& proof) const;

  size_t size() const { return secrets_.size() + certificates_.size() + users_.size(); }

 private:
  friend class CredentialsReader;
  struct Secret {
    Digest digest;
    PrincipalPtr who;
  };
  struct Certificate {
    NamePattern name;
    Principal who;  // without a name and, where these are the certificate's own, without nodes
  };
  struct User {
    uint32_t uid;
    PrincipalPtr who;
  };
  PrincipalPtr find_digest(const Digest& digest) const;

  std::vector<Secret> secrets_;
  std::vector<Certificate> certificates_;
  std::vector<User> users_;  // none: whoever may open the socket is an admin
};
using CredentialsPtr = std::shared_ptr<const Credentials>;

}  // namespace turnstile::access
