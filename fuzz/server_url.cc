// The address of a server, as a user writes it. What must hold:
// - what is accepted says where to connect: a socket's path, or http(s) and a host without spaces or control
// characters;
// - a base that is read again is the same base.
#include "client/server_url.h"

#include "support.h"

namespace turnstile::fuzz {

void run(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const auto url = client::parse_server_url(copy.view());
  if (!url) return;
  const std::string_view base = url->base;
  TS_CHECK(base.starts_with(url->tls ? "https://" : "http://"), "a base says whether it is encrypted");
  TS_CHECK(base.size() <= bytes.size() + 20, "a base is no longer than what was written");
  if (!url->socket_path.empty()) {
    TS_CHECK(bytes.ends_with(url->socket_path), "a socket's path is as it was written");
    return;
  }
  TS_CHECK(std::ranges::none_of(base, [](char c) { return uint8_t(c) <= ' ' || c == 0x7f; }),
           "a base is one word");
  const auto again = client::parse_server_url(base);
  TS_CHECK(again && again->base == base && again->tls == url->tls, "a base that is read again is the same");
}

}  // namespace turnstile::fuzz
