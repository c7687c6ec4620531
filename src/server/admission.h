// Who asks, for the requests of one loop: before anything else is made of them.
#pragma once

#include <optional>
#include <string>

#include "access/may.h"
#include "http/http.h"
#include "http/peer.h"
#include "server/access_state.h"

namespace turnstile {

// What for: to find who asks, once a connection, and to say no. Not its job: what he may do (access/may.h).
// Threads: its loop's only.
class Admission {
 public:
  explicit Admission(AccessState& state) : state_(state), credentials_(state.credentials) {}

  // A request that another site's web page has made, or may have.
  bool is_foreign(const http::Request& request, std::optional<Path> path);

  // Whether the caller is known, or need not be. False: problem() says why it is not.
  bool admit(const http::Request& request, std::optional<Path> path);
  const std::string& problem() const { return problem_; }

  // Of the request that was admitted last, while it is handled. Null: nobody has to say who he is.
  const access::Principal* who() const { return who_ == nullptr ? nullptr : who_->get(); }
  access::PrincipalPtr who_shared() const { return who_ == nullptr ? nullptr : *who_; }
  // What of the resources it may see; none: all.
  Prefixes within() const { return who_ == nullptr ? Prefixes() : Prefixes((*who_)->resources); }

  // From now on these count, also for connections that were let in before.
  void change(access::CredentialsPtr credentials);
  // Somebody who was let in before, as he is now. Null: he is not known any more.
  access::PrincipalPtr again(const access::Principal& who) const { return credentials_->find(who.proof); }

 private:
  struct Login;
  access::PrincipalPtr find(const http::Request& request);

  AccessState& state_;
  access::CredentialsPtr credentials_;
  uint64_t reading_ = 1;  // of the credentials
  const access::PrincipalPtr* who_ = nullptr;
  std::string good_host_;  // the last one that was ours: nearly always the next one, too
  std::string problem_;
};

// Where a request comes from, for people.
inline std::string_view address_of(const http::Request& request) {
  return request.peer == nullptr ? std::string_view() : std::string_view(request.peer->address);
}

}  // namespace turnstile
