#include "http/server.h"

#include <fmt/format.h>

#include <future>

#include "base/check.h"
#include "base/log.h"
#include "http/acceptor.h"
#include "http/descriptors.h"
#include "http/event_loop.h"
#include "http/listener.h"

namespace turnstile::http {

Server::Server(ServerSettings settings) : settings_(std::move(settings)) {
  TS_CHECK(settings_.loops >= 1 && settings_.loops <= 255, "a server has 1 to 255 loops");
  for (unsigned i = 0; i < settings_.loops; ++i)
    loops_.push_back(std::make_unique<EventLoop>(i, settings_.limits, statistics_));
}

Server::~Server() { shutdown(Duration(0)); }

Result<void> Server::start() {
  TS_CHECK(!acceptor_, "a server is started once");
  Result<std::vector<Listener>> listeners = open_listeners();
  if (!listeners) return std::unexpected(listeners.error());
  if (Result<void> loaded = load_tls(*listeners); !loaded) return loaded;
  for (const Listener& listener : *listeners) addresses_.push_back(listener.address());
  const Result<Room> room = find_room();
  if (!room) return std::unexpected(room.error());
  statistics_.connections_room = room->served;
  acceptor_ = std::make_unique<Acceptor>(*std::move(listeners), loops_, *room, statistics_, tls_.get());
  acceptor_->start();
  for (const auto& loop : loops_) loop->create_handler(settings_.handler);
  for (const auto& loop : loops_) loop->start();
  running_ = true;
  return {};
}

Result<std::vector<Listener>> Server::open_listeners() {
  const bool tls = !settings_.tls.certificate.empty();
  std::vector<Listener> listeners;
  const auto keep = [&](Result<Listener> listener) -> Result<void> {
    if (!listener) return std::unexpected(listener.error());
    listeners.push_back(std::move(*listener));
    return {};
  };
  for (UniqueFd& fd : settings_.passed)
    if (Result<void> kept = keep(Listener::adopt(std::move(fd), tls)); !kept)
      return std::unexpected(kept.error());
  if (!listeners.empty()) return listeners;
  for (const std::string& address : settings_.listen)
    if (Result<void> kept = keep(Listener::open(address, tls)); !kept) return std::unexpected(kept.error());
  return listeners;
}

Result<void> Server::load_tls(const std::vector<Listener>& listeners) {
  for (const Listener& listener : listeners) {
    if (!listener.is_tls() || tls_) continue;
    if (settings_.tls.certificate.empty() || settings_.tls.key.empty())
      return fail(
          fmt::format("Cannot listen on {}: TLS needs a certificate and its key.", listener.address()));
    Result<std::unique_ptr<TlsContext>> tls = TlsContext::load(settings_.tls);
    if (!tls) return std::unexpected(tls.error());
    tls_ = *std::move(tls);
  }
  return {};
}

Result<void> Server::reload_tls() { return tls_ ? tls_->reload() : Result<void>{}; }

std::vector<std::string> Server::certificate_names() const {
  return tls_ ? tls_->names() : std::vector<std::string>();
}

// After everything of the server's own is open.
Result<Room> Server::find_room() const {
  const Descriptors descriptors = claim_descriptors();
  const size_t wanted = settings_.limits.max_connections;
  const Room room = divide(descriptors, wanted);
  if (room.served == 0)
    return fail(
        fmt::format("The limit of open files is {}, and {} are open or kept for the server's own files: no "
                    "connection would fit. Raise it (ulimit -Hn, LimitNOFILE).",
                    descriptors.limit, descriptors.open + kReservedDescriptors));
  if (room.served < wanted)
    log_warning("fewer connections than max-connections fit into the limit of open files",
                {{"limit", descriptors.limit}, {"max_connections", wanted}, {"connections", room.served}});
  return room;
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
