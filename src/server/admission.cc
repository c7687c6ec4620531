#include "server/admission.h"

#include <fmt/format.h>

#include "access/secret.h"

namespace turnstile {
namespace {

// What everybody may have: a link to it may stand anywhere, and who looks whether we are healthy may call us
// as he likes.
bool is_harmless(const http::Request& request, std::optional<Path> path) {
  const bool reads = request.method == http::Method::get || request.method == http::Method::head;
  return reads && path && access::is_for_everybody(*path, false);
}

bool is_local(const http::Request& request) { return request.peer != nullptr && request.peer->local_unix; }

}  // namespace

// What a connection has shown. The next request with the same header, as nearly all are, is known by it
// without another digest.
struct Admission::Login {
  uint64_t reading = 0;
  std::string authorization;
  access::PrincipalPtr who;

  Login(uint64_t r, std::string_view a, access::PrincipalPtr w)
      : reading(r), authorization(a), who(std::move(w)) {}
  ~Login() { access::erase(authorization); }
  Login(const Login&) = delete;
  Login& operator=(const Login&) = delete;
};

bool Admission::is_foreign(const http::Request& request, std::optional<Path> path) {
  if (!state_.names.checks()) return false;
  if (request.host != good_host_ && !is_local(request)) {
    if (!state_.names.is_ours(request.host)) return !is_harmless(request, path);
    good_host_ = request.host;
  }
  if (request.origin.data() != nullptr && !state_.names.is_own_page(request.origin, request.host))
    return !is_harmless(request, path);
  return access::is_foreign_site(request.sec_fetch_site) && !is_harmless(request, path);
}

bool Admission::admit(const http::Request& request, std::optional<Path> path) {
  who_ = nullptr;
  if (!credentials_) return true;
  if (path && access::is_for_everybody(*path, state_.open_metrics)) return true;
  const auto* known = request.peer == nullptr ? nullptr : static_cast<const Login*>(request.peer->note.get());
  if (known == nullptr || known->reading != reading_ ||
      !access::same_in_constant_time(known->authorization, request.authorization)) {
    access::PrincipalPtr who = find(request);
    if (who == nullptr || request.peer == nullptr) return false;
    auto login = std::make_shared<Login>(reading_, request.authorization, std::move(who));
    if (known == nullptr || *known->who != *login->who) {
      state_.logins.fetch_add(1, std::memory_order_relaxed);
      state_.note({"login", login->who->name, address_of(request), request.path, {}, {}, "ok"});
    }
    known = login.get();
    request.peer->note = std::move(login);
  }
  who_ = &known->who;
  return true;
}

// A secret that was sent must be right, whatever else the connection shows: who sends one wants to be that
// one.
access::PrincipalPtr Admission::find(const http::Request& request) {
  if (!request.authorization.empty()) {
    const std::optional<std::string_view> secret = access::bearer_secret(request.authorization);
    problem_ =
        secret
            ? "this secret is not known here: it is mistyped, was removed, or belongs to another server; ask "
              "the administrator of this one"
            : "this server knows only Authorization: Bearer SECRET";
    return secret ? credentials_->find_secret(*secret) : nullptr;
  }
  if (request.peer != nullptr && !request.peer->certificate_name.empty()) {
    problem_ = fmt::format(
        "the client certificate's name '{}' is not known here: ask the server's administrator for a "
        "[[certificate]] in its "
        "credentials file",
        request.peer->certificate_name);
    return credentials_->find_certificate(request.peer->certificate_name);
  }
  if (is_local(request)) {
    problem_ = fmt::format(
        "the user {} is not known here: ask the server's administrator for a [[unix_user]] in its "
        "credentials file",
        request.peer->uid);
    return credentials_->find_user(request.peer->uid);
  }
  problem_.clear();  // the table's sentence
  return nullptr;
}

void Admission::change(access::CredentialsPtr credentials) {
  credentials_ = std::move(credentials);
  ++reading_;
}

}  // namespace turnstile
