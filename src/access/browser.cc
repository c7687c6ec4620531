#include "access/browser.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace turnstile::access {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = char(c + 32);
  return out;
}

// "HOST:PORT", "[ADDRESS]:PORT" or either without a port.
std::string_view without_port(std::string_view authority) {
  if (authority.starts_with('['))
    return authority.substr(0, std::min(authority.find(']'), authority.size() - 1) + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored;
  if (inet_pton(AF_INET, host.c_str(), ignored.data()) == 1) return true;
  return host.size() > 2 && host.front() == '[' && host.back() == ']' &&
         inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), ignored.data()) == 1;
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

OwnNames::OwnNames(const std::vector<std::string>& addresses, const std::vector<std::string>& told,
                   const std::vector<std::string>& certified)
    : checks_(true) {
  for (const std::string& address : addresses) add_listener(address);
  for (const std::string& name : told) {
    told_.push_back(lower(name));
    hosts_.emplace_back(without_port(told_.back()));
  }
  for (const std::string& name : certified) hosts_.push_back(lower(name));
}

void OwnNames::add_listener(std::string_view address) {
  if (address.starts_with("unix:")) return;
  if (const size_t scheme = address.find("://"); scheme != address.npos) address.remove_prefix(scheme + 3);
  const std::string host = lower(without_port(address));
  hosts_.push_back(host);
  const bool everywhere = host.empty() || host == "*" || host == "0.0.0.0" || host == "[::]";
  if (everywhere || host.starts_with("127.") || host == "[::1]" || host == "localhost")
    hosts_.insert(hosts_.end(), {"localhost", "127.0.0.1", "[::1]"});
  if (!everywhere) return;
  // A name that is an address cannot be made to point elsewhere, so it cannot be a page's that only pretends.
  any_address_ = true;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) hosts_.push_back(lower(name.data()));
}

bool OwnNames::is_ours(std::string_view host) const {
  if (!checks_ || host.empty()) return true;
  const std::string name = lower(without_port(host));
  return contains(hosts_, name) || (any_address_ && is_address(name));
}

// Whatever the scheme: who stands before us may speak TLS where we do not.
bool OwnNames::is_own_page(std::string_view origin, std::string_view host) const {
  if (!checks_) return true;
  const std::string text = lower(origin);
  const size_t scheme = text.starts_with("http://") ? 7 : text.starts_with("https://") ? 8 : 0;
  if (scheme == 0) return false;
  const std::string authority = text.substr(scheme);
  return authority == lower(host) || contains(told_, authority);
}

}  // namespace turnstile::access
