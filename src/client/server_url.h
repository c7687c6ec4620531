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
};

// nullopt: none of these, or with a user, query or fragment.
std::optional<ServerUrl> parse_server_url(std::string_view text);

}  // namespace turnstile::client
