#include "client/server_url.h"

#include <algorithm>
#include <cctype>

namespace turnstile::client {
namespace {

std::string_view authority_of(std::string_view base) {
  base.remove_prefix(base.find("://") + 3);
  return base.substr(0, base.find('/'));
}

// Without the port and the brackets of an IPv6 address.
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.rfind(':'));
}

std::string normal(const ServerUrl& url) {
  std::string authority(authority_of(url.base));
  const std::string_view path =
      std::string_view(url.base).substr(url.base.find("://") + 3 + authority.size());
  std::ranges::transform(authority, authority.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  const std::string_view behind = std::string_view(authority).substr(authority.rfind(']') + 1);
  if (behind.find(':') == std::string_view::npos) authority += url.tls ? ":443" : ":80";
  return (url.tls ? "https://" : "http://") + authority + std::string(path);
}

}  // namespace

bool ServerUrl::is_local() const {
  if (!socket_path.empty()) return true;
  const std::string_view host = host_of(authority_of(base));
  const bool address = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || (address && host.starts_with("127."));
}

bool same_server(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const std::optional<ServerUrl> first = parse_server_url(a), second = parse_server_url(b);
  return first && second && first->socket_path.empty() && second->socket_path.empty() &&
         normal(*first) == normal(*second);
}

bool may_follow(const ServerUrl& from, const ServerUrl& leader, bool with_credential) {
  if (!leader.socket_path.empty()) return false;  // nobody else knows our files
  if (from.tls) return leader.tls;
  if (!with_credential) return true;
  return from.is_local() && leader.is_private();
}

std::optional<ServerUrl> parse_server_url(std::string_view text) {
  constexpr std::string_view kHttp = "http://", kHttps = "https://", kUnix = "unix:";
  ServerUrl url;
  if (text.starts_with(kUnix)) {
    url.base = "http://localhost";
    url.socket_path = text.substr(kUnix.size());
    // sun_path holds 108 bytes, the last one a zero.
    if (url.socket_path.empty() || url.socket_path.size() > 107) return std::nullopt;
    return url;
  }
  url.tls = text.starts_with(kHttps);
  if (!url.tls && !text.starts_with(kHttp)) return std::nullopt;
  while (text.ends_with('/')) text.remove_suffix(1);
  const size_t scheme = url.tls ? kHttps.size() : kHttp.size();
  if (text.size() <= scheme) return std::nullopt;
  const std::string_view rest = text.substr(scheme);
  const auto wrong = [](char c) {
    return uint8_t(c) <= 0x20 || c == 0x7f || c == '@' || c == '?' || c == '#';
  };
  if (rest.front() == ':' || rest.front() == '/' || std::ranges::any_of(rest, wrong)) return std::nullopt;
  url.base = text;
  return url;
}

}  // namespace turnstile::client
