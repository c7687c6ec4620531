#include "http/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace turnstile::http {
namespace {

// An IPv4 address is written as one, also where a socket for both families has accepted it: limits and logs
// go by address, and one host is to have one.
std::string text_of(const in6_addr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (IN6_IS_ADDR_V4MAPPED(&address))
    ::inet_ntop(AF_INET, address.s6_addr + 12, text, sizeof text);
  else
    ::inet_ntop(AF_INET6, &address, text, sizeof text);
  return text;
}

std::string text_of(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

}  // namespace

Peer peer_of(int socket, const sockaddr_storage& from) {
  Peer peer;
  if (from.ss_family == AF_INET) {
    peer.address = text_of(reinterpret_cast<const sockaddr_in&>(from).sin_addr);
  } else if (from.ss_family == AF_INET6) {
    peer.address = text_of(reinterpret_cast<const sockaddr_in6&>(from).sin6_addr);
  } else if (from.ss_family == AF_UNIX) {
    peer.local_unix = true;
    peer.address = "unix";
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) peer.uid = credentials.uid;
  }
  return peer;
}

}  // namespace turnstile::http
