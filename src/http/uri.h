// What RFC 3986 lets a URI consist of, as far as a request line and a Host header need it.
//
// A file of its own, because Beast takes any byte in a target and any text as a Host: what a proxy before us
// and we ourselves could read in two ways is refused before anybody reads it.
#pragma once

#include <string_view>

namespace turnstile::http {

// uri-host [":" port], as a Host header has it (RFC 9110, 7.2): a name, an IPv4 address, or an IPv6 address
// in brackets. An empty name is one (of an authority that is not known), but not with a port.
bool is_host(std::string_view text);

// absolute-path ["?" query], each character allowed there, each escape complete. No fragment.
bool is_path_and_query(std::string_view text);

}  // namespace turnstile::http
