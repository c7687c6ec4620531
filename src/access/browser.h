// Whether a request may have been made by somebody else's web page.
//
// A page that is open on an operator's machine can send requests to 127.0.0.1 and to all that the machine
// reaches, and by a name of its own that it lets point there (rebinding) it can even read the answers.
// Browsers say where a request comes from, in headers that a page cannot change; programs do not send these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace turnstile::access {

// Threads: any, once it is made.
class OwnNames {
 public:
  // Checks nothing: for servers that no browser reaches.
  OwnNames() = default;
  // `addresses`: those that we listen on, as "HOST:PORT", "[::1]:PORT" or "unix:PATH". `told`: further names,
  // each perhaps with a port. `certified`: names in our certificate. Nobody else's page can have such a name,
  // or its browser would not believe us; but other ports of it may be somebody else's.
  OwnNames(const std::vector<std::string>& addresses, const std::vector<std::string>& told,
           const std::vector<std::string>& certified = {});

  // A Host header. The port is not looked at: whoever forwards one to us chooses his own. Empty: it is ours,
  // because every browser sends one.
  bool is_ours(std::string_view host) const;
  // An Origin header of a request with this Host header: a page that we have served ourselves, or that was
  // served under a name that we were told of.
  bool is_own_page(std::string_view origin, std::string_view host) const;

  bool checks() const { return checks_; }

 private:
  void add_listener(std::string_view address);

  bool checks_ = false;
  bool any_address_ = false;        // we listen on all of this machine's
  std::vector<std::string> hosts_;  // lower case, without port
  std::vector<std::string> told_;   // as told, lower case
};

// Sec-Fetch-Site: another site, or another origin of the same site, such as another port of localhost.
inline bool is_foreign_site(std::string_view sec_fetch_site) {
  return !sec_fetch_site.empty() && sec_fetch_site != "same-origin" && sec_fetch_site != "none";
}

}  // namespace turnstile::access
