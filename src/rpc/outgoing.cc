// See outgoing.h.
#include "rpc/outgoing.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace turnstile::rpc {

void Outgoing::add(std::string_view bytes) {
  size_ += bytes.size();
  if (pieces_.size() > first_ && !pieces_.back().owner)
    pieces_.back().size += bytes.size();  // what is copied lies one behind the other
  else
    pieces_.push_back({nullptr, nullptr, copied_.size(), bytes.size()});
  copied_.append(bytes);
}

void Outgoing::add(std::shared_ptr<const char[]> owner, std::string_view bytes) {
  size_ += bytes.size();
  pieces_.push_back({std::move(owner), bytes.data(), 0, bytes.size()});
}

Outgoing::Sent Outgoing::send_to(int fd) {
  while (size_ > 0) {
    std::array<iovec, 256> parts;
    size_t count = 0, wanted = 0;
    for (size_t i = first_; i < pieces_.size() && count < parts.size(); ++i, ++count) {
      std::string_view bytes = bytes_of(pieces_[i]);
      if (i == first_) bytes.remove_prefix(gone_);
      parts[count] = {const_cast<char*>(bytes.data()), bytes.size()};
      wanted += bytes.size();
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::some : Sent::broken;
    drop(size_t(sent));
    if (size_t(sent) < wanted) return Sent::some;
  }
  return Sent::all;
}

void Outgoing::drop(size_t sent) {
  size_ -= sent;
  if (size_ == 0) {
    copied_.clear();
    pieces_.clear();
    first_ = gone_ = 0;
    return;
  }
  for (sent += gone_; sent >= pieces_[first_].size; ++first_) {
    sent -= pieces_[first_].size;
    pieces_[first_].owner.reset();
  }
  gone_ = sent;
}

}  // namespace turnstile::rpc
