#include "http/poller.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/check.h"

namespace turnstile::http {

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TS_CHECK(epoll_.is_open() && bell_.is_open(), "a process that starts has descriptors for its loops");
  // By edge, so that nobody has to read it: every ring is an edge of its own.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
  TS_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) == 0, "the bell can be added");
}

bool Poller::add(int fd, uint32_t events, Source& source) {
  epoll_event event{.events = events, .data = {.ptr = &source}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Poller::change(int fd, uint32_t events, Source& source) {
  epoll_event event{.events = events, .data = {.ptr = &source}};
  TS_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0, "a watched socket can be changed");
}

bool Poller::wait(std::chrono::milliseconds timeout) {
  count_ = ::epoll_wait(epoll_.get(), ready_.data(), kAtOnce, int(timeout.count()));
  TS_CHECK(count_ >= 0 || errno == EINTR, "epoll waits");
  return count_ > 0;
}

void Poller::dispatch() {
  for (int i = 0; i < count_; ++i) {
    const epoll_event& event = ready_[size_t(i)];
    if (event.data.ptr) static_cast<Source*>(event.data.ptr)->on_ready(event.events);
  }
}

void Poller::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

}  // namespace turnstile::http
