#include "http/server.h"

#include <sys/resource.h>

#include <future>

#include "base/check.h"
#include "http/acceptor.h"
#include "http/event_loop.h"
#include "http/listener.h"

namespace turnstile::http {
namespace {

// Every connection takes a descriptor; the soft limit is often 1,024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Server::Server(ServerSettings settings) : settings_(std::move(settings)) {
  TS_CHECK(settings_.loops >= 1 && settings_.loops <= 255, "a server has 1 to 255 loops");
  for (unsigned i = 0; i < settings_.loops; ++i)
    loops_.push_back(std::make_unique<EventLoop>(i, settings_.limits, counters_));
}

Server::~Server() { shutdown(Duration(0)); }

Result<void> Server::start() {
  TS_CHECK(!acceptor_, "a server is started once");
  raise_descriptor_limit();
  std::vector<Listener> listeners;
  for (const std::string& address : settings_.listen) {
    Result<Listener> listener = Listener::open(address);
    if (!listener) return std::unexpected(listener.error());
    listeners.push_back(std::move(*listener));
  }
  for (const Listener& listener : listeners) addresses_.push_back(listener.address());
  acceptor_ = std::make_unique<Acceptor>(std::move(listeners), loops_, settings_.limits, counters_);
  acceptor_->start();
  for (const auto& loop : loops_) loop->create_handler(settings_.handler);
  for (const auto& loop : loops_) loop->start();
  running_ = true;
  return {};
}

Loop& Server::loop(size_t index) { return *loops_.at(index); }

void Server::stop_accepting() {
  if (!running_) return;
  std::promise<void> closed;
  loops_.front()->post([&] {
    acceptor_->close();
    closed.set_value();
  });
  closed.get_future().wait();
}

void Server::shutdown(Duration patience) {
  if (!running_) return;
  stop_accepting();
  running_ = false;
  for (const auto& loop : loops_) loop->stop_when_drained();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const auto& loop : loops_) loop->join_until(deadline);
}

}  // namespace turnstile::http
