// The address of a server, as people write it: http://HOST:PORT, https://HOST:PORT or unix:PATH.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace turnstile::client {

struct ServerUrl {
  std::string base;         // what a target is appended to: "http://127.0.0.1:8086"
  std::string socket_path;  // of unix:PATH
  bool tls = false;

  bool is_local() const;  // nobody between here and there: a unix socket, or this machine's loopback
  // Whether what is said there is read by nobody else.
  bool is_private() const { return tls || is_local(); }
};

// nullopt: none of these, or with a user, query or fragment.
std::optional<ServerUrl> parse_server_url(std::string_view text);

// The same server, however it is written: case of the host, the scheme's own port, a slash at the end.
bool same_server(std::string_view a, std::string_view b);

// Whether a client may go to `leader`, a URL that is not among its own, because the server at `from` named it
// (decision 0027).
bool may_follow(const ServerUrl& from, const ServerUrl& leader, bool with_credential);

}  // namespace turnstile::client
