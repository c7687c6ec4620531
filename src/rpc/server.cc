// See server.h. One loop owns the listener and all connections; methods' threads reach it through a list of
// streams to look at, and a bell.
#include "rpc/server.h"

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <vector>

#include "base/log.h"
#include "http/look_predictor.h"
#include "rpc/connection.h"
#include "rpc/unix_listener.h"

namespace turnstile::rpc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Out of descriptors or memory: to try again at once would only burn the processor.
constexpr milliseconds kPause{100};
constexpr milliseconds kLookWhileStopping{20};

class LoopServer final : public Server {
 public:
  LoopServer(UniqueFd listener, const Methods& methods, const Limits& limits)
      : limits_(limits),
        threads_(limits.call_threads),
        surroundings_{methods,
                      threads_,
                      poller_,
                      limits.max_message,
                      limits.calls_of_connection,
                      [this](uint64_t connection, int32_t stream) { ring(connection, stream); }},
        acceptor_(*this, std::move(listener)) {}
  ~LoopServer() override { stop(milliseconds(0)); }

  bool begin() {
    if (!poller_.add(acceptor_.socket.get(), EPOLLIN, acceptor_)) return false;
    loop_ = std::thread([this] { run(); });
    return true;
  }

  void stop(milliseconds grace) override {
    if (!loop_.joinable()) return;
    stop_at_.store((Clock::now() + grace).time_since_epoch());
    stopping_.store(true);
    poller_.wake();
    loop_.join();
    threads_.wait_for_all();
  }

 private:
  struct Acceptor final : http::Source {
    Acceptor(LoopServer& owner, UniqueFd listener) : server(owner), socket(std::move(listener)) {}
    void on_ready(uint32_t) override { server.accept(); }
    LoopServer& server;
    UniqueFd socket;
  };
  struct ToDo {
    uint64_t connection;
    int32_t stream;
  };

  void ring(uint64_t connection, int32_t stream) {
    bool first = false;
    {
      const Locked lock(mutex_);
      first = to_do_.empty();
      to_do_.push_back({connection, stream});
    }
    if (first) poller_.wake();
  }

  void accept() {
    UniqueFd socket(::accept4(acceptor_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause_accepting();
      return;  // else: that one connection has gone again
    }
    if (connections_.size() >= limits_.connections) {
      log_warning("too many connections; one was closed at once", {{"limit", limits_.connections}});
      return;
    }
    const uint64_t number = ++last_connection_;
    auto connection = std::make_unique<Connection>(number, std::move(socket), surroundings_);
    if (connection->start()) connections_.emplace(number, std::move(connection));
  }

  void pause_accepting() {
    log_warning("cannot accept connections for the moment", {{"errno", errno}});
    poller_.change(acceptor_.socket.get(), 0, acceptor_);
    accept_again_ = Clock::now() + kPause;
  }

  void go_on_accepting() {
    if (!accept_again_ || Clock::now() < *accept_again_) return;
    accept_again_.reset();
    if (acceptor_.socket.is_open()) poller_.change(acceptor_.socket.get(), EPOLLIN, acceptor_);
  }

  void run() {
    while (true) {
      wait(stopping_.load() ? kLookWhileStopping : accept_again_ ? kPause : milliseconds(-1));
      poller_.dispatch();
      go_on_accepting();
      look_at_streams();
      std::erase_if(connections_, [](const auto& entry) { return entry.second->broken(); });
      if (stopping_.load() && say_goodbye_and_see_whether_all_ended()) break;
    }
    connections_.clear();
  }

  // containerd reads a blob by one call after the other: where the next one is likely to come soon, the loop
  // looks for it before it sleeps, as an HTTP loop does (decision 0012). Not while a call is at work on its
  // own thread: that one, and its client, need the cores.
  void wait(milliseconds patience) {
    using Look = http::LookPredictor;
    const Clock::time_point since = Clock::now();
    bool found = false;
    if (has_cores_ && look_.pays(Look::From::peers) && !threads_.are_busy()) {
      do found = poller_.wait(milliseconds(0));
      while (!found && Clock::now() - since < Look::kLongestLook);
    }
    if (!found) poller_.wait(patience);
    look_.learn(Look::From::peers, Clock::now() - since, found);
  }

  void look_at_streams() {
    {
      const Locked lock(mutex_);
      looking_at_.swap(to_do_);
    }
    for (const ToDo& what : looking_at_)
      if (const auto found = connections_.find(what.connection); found != connections_.end())
        found->second->resume(what.stream);
    looking_at_.clear();
  }

  bool say_goodbye_and_see_whether_all_ended() {
    if (acceptor_.socket.is_open()) {
      acceptor_.socket.reset();
      for (const auto& [number, connection] : connections_) connection->say_goodbye();
    }
    bool busy = false;
    for (const auto& [number, connection] : connections_)
      busy |= !connection->broken() && connection->is_busy();
    return !busy || Clock::now().time_since_epoch() >= stop_at_.load();
  }

  const Limits limits_;
  const bool has_cores_ = std::thread::hardware_concurrency() > 1;  // alone, it would keep its client waiting
  http::LookPredictor look_;
  http::Poller poller_;
  CallThreads threads_;
  const Surroundings surroundings_;
  Acceptor acceptor_;
  std::unordered_map<uint64_t, std::unique_ptr<Connection>> connections_;
  uint64_t last_connection_ = 0;
  std::optional<Clock::time_point> accept_again_;  // while there is no room for more
  std::vector<ToDo> looking_at_;
  Mutex mutex_;
  std::vector<ToDo> to_do_ TS_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_ = false;
  std::atomic<Clock::duration> stop_at_{};
  std::thread loop_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const std::string& socket, const Methods& methods,
                                              const Limits& limits) {
  Result<UniqueFd> listener = listen_on_unix(socket);
  if (!listener) return std::unexpected(listener.error());
  return start(std::move(*listener), methods, limits);
}

Result<std::unique_ptr<Server>> Server::start(UniqueFd listener, const Methods& methods,
                                              const Limits& limits) {
  auto server = std::make_unique<LoopServer>(std::move(listener), methods, limits);
  if (!server->begin()) return fail("the kernel cannot watch a socket that listens");
  return server;
}

}  // namespace turnstile::rpc
