#include "http/acceptor.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/log.h"

namespace turnstile::http {
namespace {

// A burst of connections must not keep the first loop from its own ones.
constexpr int kAtOnce = 64;
// Out of file descriptors or memory: trying again at once would only burn the processor.
constexpr auto kPause = std::chrono::milliseconds(100);
// So many connections more than allowed are told so; beyond that they are just closed.
constexpr size_t kRefusedAtOnce = 256;

}  // namespace

Acceptor::Acceptor(std::vector<Listener> listeners, std::span<const std::unique_ptr<EventLoop>> loops,
                   const Limits& limits, Counters& counters)
    : loops_(loops), max_connections_(limits.max_connections), counters_(counters) {
  Io& io = loops.front()->io();
  for (Listener& listener : listeners) {
    const int fd = listener.fd();
    ports_.push_back(std::make_unique<Port>(Port{std::move(listener), {io, fd}, Timer(io)}));
  }
}

void Acceptor::start() {
  for (const auto& port : ports_) wait(*port);
}

void Acceptor::close() {
  if (std::exchange(closed_, true)) return;
  for (const auto& port : ports_) {
    port->timer.cancel();
    port->descriptor.release();
    port->listener.close();
  }
}

void Acceptor::wait(Port& port) {
  port.descriptor.async_wait(port.descriptor.wait_read, [this, &port](const error_code& failure) {
    if (!failure && !closed_) accept_some(port);
  });
}

void Acceptor::accept_some(Port& port) {
  for (int i = 0; i < kAtOnce; ++i) {
    UniqueFd socket(::accept4(port.listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      deal(std::move(socket), port.listener.family());
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log_warning("cannot accept connections for the moment",
                  {{"address", port.listener.address()}, {"errno", errno}});
      return pause(port);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    }  // else: that one connection has gone again
  }
  wait(port);
}

void Acceptor::deal(UniqueFd socket, int family) {
  counters_.accepted.fetch_add(1, std::memory_order_relaxed);
  const bool refused = counters_.connections_open.load(std::memory_order_relaxed) >= max_connections_;
  if (refused) {
    counters_.refused.fetch_add(1, std::memory_order_relaxed);
    if (counters_.refused_open.load(std::memory_order_relaxed) >= kRefusedAtOnce) return;
  }
  (refused ? counters_.refused_open : counters_.connections_open).fetch_add(1, std::memory_order_relaxed);
  loops_[next_loop_]->adopt(std::move(socket), family, refused);
  next_loop_ = (next_loop_ + 1) % loops_.size();
}

void Acceptor::pause(Port& port) {
  port.timer.expires_after(kPause);
  port.timer.async_wait([this, &port](const error_code& failure) {
    if (!failure && !closed_) accept_some(port);
  });
}

}  // namespace turnstile::http
