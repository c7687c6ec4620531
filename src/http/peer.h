// Who is at the other end of a connection, as far as the connection itself shows it.
//
// A file of its own, because whoever decides who may do what reads it, and needs nothing else of a
// connection.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>

namespace turnstile::http {

// Known from the first request on and the same for all requests of a connection.
struct Peer {
  // The name in a client certificate that has been verified: its first DNS name, else its common name. Empty:
  // the client has shown none.
  std::string certificate_name;
  bool tls = false;           // what is said here can be read by nobody else
  bool local_unix = false;    // a unix socket; then:
  uint32_t uid = UINT32_MAX;  // ... the user that has connected; UINT32_MAX: the kernel does not say
  std::string address;        // of TCP: the host's address without port or brackets; else "unix"
  // For the handler: what it remembers of this connection. Only its loop's thread touches it; it goes with
  // the connection.
  mutable std::shared_ptr<void> note = {};
};

// Of an accepted socket: `from` is what accept() has filled in.
Peer peer_of(int socket, const sockaddr_storage& from);

}  // namespace turnstile::http
