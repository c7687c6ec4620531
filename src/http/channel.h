// What a connection's bytes go through: the socket as it is, or TLS on it.
//
// Two kinds and no more, told apart by one pointer: a virtual call would cost the plain one something, and
// every request reads and writes here.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string_view>

#include "base/unique_fd.h"
#include "http/tls_session.h"

namespace turnstile::http {

// The calls are those of the same names on a socket that does not block: a count, or -1 and errno.
//
// Threads: the loop's.
class Channel {
 public:
  explicit Channel(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  bool is_tls() const { return tls_ != nullptr; }

  // Both ends of its being TLS: the second when the peer speaks something else, or is not to be greeted any
  // further.
  TlsSession& begin_tls(const TlsContext& context) {
    if (!tls_) tls_ = std::make_unique<TlsSession>(context, fd());
    return *tls_;
  }
  void drop_tls() { tls_.reset(); }

  void note_readable(bool hung_up) {
    if (tls_) tls_->note_readable(hung_up);
  }
  ssize_t receive(char* to, size_t room) {
    return tls_ ? tls_->receive(to, room) : ::recv(fd(), to, room, 0);
  }
  // Whether a read that has found `count` bytes has taken all that there was.
  bool is_drained(size_t count, size_t room) const { return tls_ ? tls_->is_drained() : count < room; }

  ssize_t send(std::string_view bytes) {
    return tls_ ? tls_->send(bytes) : ::send(fd(), bytes.data(), bytes.size(), kSendFlags);
  }
  ssize_t send(std::span<iovec> parts) {
    if (tls_) return tls_->send(parts);
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    return ::sendmsg(fd(), &message, kSendFlags);
  }

  // Nothing more will be sent. False: the socket is not connected any more.
  bool end_output() {
    if (tls_) tls_->end_output();
    return ::shutdown(fd(), SHUT_WR) == 0;
  }
  // The kernel drops what it has not sent, and the peer gets a reset.
  void cut() {
    drop_tls();
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  void close() {
    if (tls_) tls_->end_output();
    tls_.reset();
    socket_.reset();
  }

 private:
  static constexpr int kSendFlags = MSG_NOSIGNAL | MSG_DONTWAIT;

  UniqueFd socket_;
  std::unique_ptr<TlsSession> tls_;  // none: plain, or TLS of which nothing has come yet
};

}  // namespace turnstile::http
