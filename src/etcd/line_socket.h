// The bytes of a CallLine: a socket, with TLS on it if wished, and a deadline for everything.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "etcd/connect.h"

namespace turnstile::etcd {

using SteadyTime = std::chrono::steady_clock::time_point;

// What TLS needs of the settings, read once. Null: a file cannot be used; gRPC says which.
using LineTls = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
LineTls make_line_tls(const Options& options);

// "host:1" -> "host", "[::1]:1" -> "::1".
std::string host_of(std::string_view authority);

// Not its job: what the bytes mean. Threads: one at a time.
class LineSocket {
 public:
  // `peer`: as gRPC names it, "ipv4:127.0.0.1:2379" or "ipv6:%5B::1%5D:2379": the address that it has found,
  // so that nobody waits for a name here. `tls`: null without. `host`: whose certificate it must be.
  static std::unique_ptr<LineSocket> connect(std::string_view peer, SSL_CTX* tls, const std::string& host,
                                             SteadyTime until);

  // Connects only to hear whether it is let in: what TLS says against it, in OpenSSL's words. Nothing: it is
  // let in, or nobody has said so in time. A member that does not take our certificate says so behind the
  // handshake (TLS 1.3), and who has sent something by then may find the connection reset instead: this sends
  // nothing.
  static std::optional<std::string> refusal(std::string_view peer, SSL_CTX* tls, const std::string& host,
                                            SteadyTime until);

  // False: not all of it has left in time, or ever will.
  bool send(std::string_view bytes, SteadyTime until);
  // What there is, after waiting for it. Nothing: none in time (`timed_out()`), or hung up.
  std::span<const uint8_t> receive(SteadyTime until);
  bool timed_out() const { return timed_out_; }

 private:
  explicit LineSocket(UniqueFd socket) : socket_(std::move(socket)) {}
  // Null: not in time, or there is nobody.
  static std::unique_ptr<LineSocket> dial(std::string_view peer, SteadyTime until);
  bool greet(SSL_CTX* tls, const std::string& host, SteadyTime until);
  // After a call of OpenSSL's or the kernel's that could not go on: waits until it can. False: never, or
  // late.
  bool wait(short events, SteadyTime until);
  bool wait_for_tls(int result, SteadyTime until);

  UniqueFd socket_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};
  bool timed_out_ = false;
  std::string refusal_;  // why TLS does not go on, if one side will not have the other
  uint8_t received_[16 << 10];
};

}  // namespace turnstile::etcd
