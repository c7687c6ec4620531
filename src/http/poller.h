// The kernel's epoll: which sockets have something to do, and a bell that other threads can ring.
//
// Not Asio: measured beside it, this saves one failing recv() a request and the scheduler between the kernel
// and us (docs/decisions/0013-epoll-of-our-own.md).
#pragma once

#include <sys/epoll.h>

#include <array>
#include <chrono>

#include "base/unique_fd.h"

namespace turnstile::http {

// Something with a descriptor. It must live until the wait() that could still report it has returned, even if
// its descriptor has been closed before.
class Source {
 public:
  virtual void on_ready(uint32_t events) = 0;  // of epoll's

 protected:
  ~Source() = default;
};

// Threads: wake() by any; all else by one.
class Poller {
 public:
  Poller();

  // `events` as epoll knows them. A descriptor leaves by being closed. False: the kernel has no room for it.
  [[nodiscard]] bool add(int fd, uint32_t events, Source& source);
  // Other events; what is true already is reported again, also of an edge that was seen before.
  void change(int fd, uint32_t events, Source& source);

  // Waits until something has something to do, at most `timeout` (negative: for ever). Returns whether there
  // is anything, the bell included.
  bool wait(std::chrono::milliseconds timeout);
  // Calls on_ready() for what wait() has found.
  void dispatch();
  void wake();

 private:
  static constexpr int kAtOnce = 256;

  UniqueFd epoll_, bell_;
  int count_ = 0;
  std::array<epoll_event, kAtOnce> ready_;
};

}  // namespace turnstile::http
