#include "http/uri.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace turnstile::http {
namespace {

enum Kind : uint8_t { kName = 1, kPath = 2, kHex = 4, kDigit = 8 };

constexpr std::array<uint8_t, 256> kinds() {
  std::array<uint8_t, 256> table{};
  const auto add = [&](std::string_view characters, int kind) {
    for (const char c : characters) table[uint8_t(c)] |= uint8_t(kind);
  };
  add("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", kName | kPath);  // unreserved
  add("!$&'()*+,;=", kName | kPath);                                                         // sub-delims
  add(":@/?", kPath);
  add("0123456789ABCDEFabcdef", kHex);
  add("0123456789", kDigit);
  return table;
}
constexpr std::array<uint8_t, 256> kKinds = kinds();

bool is(char c, Kind kind) { return kKinds[uint8_t(c)] & kind; }

bool all(std::string_view text, Kind kind) {
  return std::ranges::all_of(text, [kind](char c) { return is(c, kind); });
}

// Characters of `kind` and complete escapes.
bool all_or_escaped(std::string_view text, Kind kind) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (is(text[i], kind)) continue;
    if (text[i] != '%' || text.size() - i < 3 || !is(text[i + 1], kHex) || !is(text[i + 2], kHex))
      return false;
    i += 2;
  }
  return true;
}

bool is_ipv6(std::string_view text) {
  char address[INET6_ADDRSTRLEN] = {};
  if (text.size() >= sizeof address) return false;
  std::memcpy(address, text.data(), text.size());
  in6_addr parsed;
  return ::inet_pton(AF_INET6, address, &parsed) == 1;
}

// "v" 1*HEXDIG "." and then what nobody has defined yet.
bool is_ip_of_the_future(std::string_view text) {
  if (text.empty() || (text[0] != 'v' && text[0] != 'V')) return false;
  const size_t dot = text.find('.');
  if (dot == text.npos || dot < 2 || dot + 1 == text.size()) return false;
  return all(text.substr(1, dot - 1), kHex) &&
         std::ranges::all_of(text.substr(dot + 1), [](char c) { return c == ':' || is(c, kName); });
}

// Digits, of which there may be none; nobody can listen above 65535.
bool is_port(std::string_view text) {
  unsigned value = 0;
  for (const char c : text) {
    if (!is(c, kDigit)) return false;
    value = value * 10 + unsigned(c - '0');
    if (value > 65535) return false;
  }
  return true;
}

}  // namespace

bool is_host(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos) return false;
    const std::string_view address = text.substr(1, end - 1), rest = text.substr(end + 1);
    if (!is_ipv6(address) && !is_ip_of_the_future(address)) return false;
    return rest.empty() || (rest[0] == ':' && is_port(rest.substr(1)));
  }
  const size_t colon = text.find(':');
  if (colon == text.npos) return all_or_escaped(text, kName);
  return colon > 0 && all_or_escaped(text.substr(0, colon), kName) && is_port(text.substr(colon + 1));
}

bool is_path_and_query(std::string_view text) { return all_or_escaped(text, kPath); }

}  // namespace turnstile::http
