// Addresses to listen on: from the text of a setting to a bound socket.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace turnstile::http {

// Of Listener::open(): another program listens there. That may pass by itself, unlike a wrong address.
bool says_in_use(const Error& error);

// Where a socket is bound, written like the addresses of Listener::open(); empty: it is of no kind that is
// served.
std::string bound_address(int fd);

// Whether only this machine's programs can reach an address that is written like those of open().
bool is_loopback(std::string_view address);

// A bound, listening, non-blocking socket. A Unix socket's file goes when the listener that made it goes.
class Listener {
 public:
  // "HOST:PORT", "[ADDRESS]:PORT" or "unix:PATH"; an empty host or * is every IPv4 address, port 0 any free
  // port. "https://" before it: TLS is spoken there; "http://": it is not; else `tls` says so, but of unix
  // sockets.
  static Result<Listener> open(std::string_view address, bool tls = false);
  // One that listens already and was given to us by who made it: when we close it, it listens on.
  static Result<Listener> adopt(UniqueFd fd, bool tls = false);

  Listener(Listener&& from) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener() { close(); }

  int fd() const { return fd_.get(); }
  int family() const { return family_; }
  bool is_tls() const { return tls_; }
  // With the real port, and with "https://" where TLS is spoken.
  std::string address() const { return tls_ ? "https://" + address_ : address_; }
  void close();

 private:
  Listener(UniqueFd fd, int family, std::string address, bool own = true)
      : fd_(std::move(fd)), family_(family), address_(std::move(address)), own_(own) {}
  static Result<Listener> open_plain(std::string_view address);
  static Result<Listener> open_unix(const std::string& path);
  static Result<Listener> open_tcp(std::string_view address, const std::string& host,
                                   const std::string& port);

  UniqueFd fd_;
  int family_;
  std::string address_;
  bool own_;  // not adopted
  bool tls_ = false;
};

}  // namespace turnstile::http
