#include "http/acceptor.h"

#include <sys/socket.h>
#include <sys/timerfd.h>

#include <cerrno>

#include "base/check.h"
#include "base/log.h"

namespace turnstile::http {
namespace {

// A burst of connections must not keep the first loop from its own ones.
constexpr int kAtOnce = 64;
// Out of file descriptors, memory or room: trying again at once would only burn the processor.
constexpr auto kPause = std::chrono::milliseconds(100);
// A second. A handshake takes as long as a hundred requests (RSA: a thousand), and a flood would have them
// all.
constexpr unsigned kGreetsToRefuse = 20;

}  // namespace

Acceptor::Acceptor(std::vector<Listener> listeners, std::span<const std::unique_ptr<EventLoop>> loops,
                   Room room, Statistics& statistics, const TlsContext* tls)
    : loops_(loops), room_(room), statistics_(statistics), tls_(tls) {
  for (Listener& listener : listeners) ports_.push_back(std::make_unique<Port>(*this, std::move(listener)));
}

void Acceptor::start() {
  for (const auto& port : ports_) port->start();
}

void Acceptor::close() {
  for (const auto& port : ports_) port->close();
}

Acceptor::Port::Port(Acceptor& acceptor, Listener listener)
    : acceptor_(acceptor), listener_(std::move(listener)), alarm_(*this) {}

void Acceptor::Port::start() {
  Poller& poller = acceptor_.loops_.front()->poller();
  const bool watched =
      poller.add(listener_.fd(), EPOLLIN, *this) && poller.add(alarm_.fd(), EPOLLIN | EPOLLET, alarm_);
  TS_CHECK(watched, "a loop that starts has room for its listeners");
}

void Acceptor::Port::watch(bool yes) {
  acceptor_.loops_.front()->poller().change(listener_.fd(), yes ? uint32_t(EPOLLIN) : 0, *this);
}

void Acceptor::Port::on_ready(uint32_t) {
  for (int i = 0; i < kAtOnce && !closed_; ++i) {
    if (acceptor_.is_full()) return pause();
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    UniqueFd socket(
        ::accept4(listener_.fd(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      acceptor_.deal(std::move(socket), from, listener_.is_tls());
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log_warning("cannot accept connections for the moment",
                  {{"address", listener_.address()}, {"errno", errno}});
      return pause();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    }  // else: that one connection has gone again
  }
}

void Acceptor::Port::pause() {
  watch(false);
  alarm_.set(kPause);
}

void Acceptor::Port::close() {
  if (std::exchange(closed_, true)) return;
  listener_.close();
}

Acceptor::Port::Alarm::Alarm(Port& port)
    : port_(port), timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  TS_CHECK(timer_.is_open(), "a process that starts has descriptors for its timers");
}

void Acceptor::Port::Alarm::set(std::chrono::milliseconds delay) {
  const itimerspec once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = delay.count() * 1'000'000}};
  ::timerfd_settime(timer_.get(), 0, &once, nullptr);
}

void Acceptor::Port::Alarm::on_ready(uint32_t) {
  if (!port_.closed_) port_.watch(true);
}

// Not even one more can be told that it is too many: it waits where the kernel keeps it.
bool Acceptor::is_full() const {
  return statistics_.connections_open.load(std::memory_order_relaxed) >= room_.served &&
         statistics_.refused_open.load(std::memory_order_relaxed) >= room_.refused;
}

// Whether one more may be greeted only to hear no.
bool Acceptor::may_greet_to_refuse() {
  const Time now = loops_.front()->now();
  if (now - greets_since_ >= std::chrono::seconds(1)) {
    greets_since_ = now;
    greets_ = 0;
  }
  if (greets_ >= kGreetsToRefuse) return false;
  ++greets_;
  return true;
}

// One that is too many is told so: with TLS only now and then, the others are closed without a word.
void Acceptor::deal(UniqueFd socket, const sockaddr_storage& from, bool tls) {
  statistics_.accepted.fetch_add(1, std::memory_order_relaxed);
  const bool refused = statistics_.connections_open.load(std::memory_order_relaxed) >= room_.served;
  if (refused) statistics_.refused.fetch_add(1, std::memory_order_relaxed);
  if (refused && tls && !may_greet_to_refuse()) return;
  (refused ? statistics_.refused_open : statistics_.connections_open).fetch_add(1, std::memory_order_relaxed);
  auto peer = std::make_unique<Peer>(peer_of(socket.get(), from));
  loops_[next_loop_]->adopt({std::move(socket), std::move(peer), tls ? tls_ : nullptr, refused});
  next_loop_ = (next_loop_ + 1) % loops_.size();
}

}  // namespace turnstile::http
