#include "client/server_url.h"

#include <algorithm>

namespace turnstile::client {

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
