// The generator's connections: non-blocking sockets, one epoll loop, replies in the order of requests.
//
// Several clients may share a connection (--pipeline): client i uses connection i mod count.
// Not here: what a reply means. Each is handed to the callback with the client that asked.
// Threads: one. The callback may call send().
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tls.h"
#include "wire.h"

// A blocking connection to the server. `source` spreads many connections over 127.0.0.1, .2, .3, …
// because one source address has only some 28,000 ports.
inline int connect_to(int port, int source = 0) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (source > 0) {
    int on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + unsigned(source));
    bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::string why = std::strerror(errno);
    close(fd);
    throw std::runtime_error("cannot connect to port " + std::to_string(port) + ": " + why);
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

class Connections {
 public:
  using OnReply = std::function<void(int client, const Reply&)>;

  Connections(const Wire& wire, int port, int count, bool tls, OnReply on_reply)
      : wire_(wire), port_(port), is_tls_(tls), on_reply_(std::move(on_reply)), all_(size_t(count)) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    for (Connection& connection : all_) open(connection);
  }
  ~Connections() {
    for (Connection& connection : all_) {
      connection.tls.close();
      close(connection.fd);
    }
    close(epoll_);
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Sends `bytes`, to which the server will give `replies` replies.
  void send(int client, std::string_view bytes, int replies = 1) {
    Connection& connection = all_[size_t(client) % all_.size()];
    connection.out.append(bytes);
    connection.asking.insert(connection.asking.end(), size_t(replies), client);
    // What a callback sends on its own connection leaves together, after the last of its replies.
    if (&connection != reading_) flush(connection);
  }

  // Waits at most `timeout_ms` for something to arrive, then serves all of it.
  void poll(int timeout_ms) {
    epoll_event events[256];
    int count = epoll_wait(epoll_, events, 256, timeout_ms);
    for (int i = 0; i < count; ++i) {
      Connection& connection = all_[events[i].data.u64];
      if (events[i].events & EPOLLOUT) flush(connection);
      if (events[i].events & ~unsigned(EPOLLOUT)) read(connection);
    }
  }

  long lost() const { return lost_; }

 private:
  struct Connection {
    int fd = -1;
    Tls tls;
    bool wants_out = false;
    std::string in, out;
    std::deque<int> asking;  // the clients that the next replies belong to
  };

  static constexpr size_t kConnectionsPerSource = 20'000;

  void open(Connection& connection) {
    size_t index = size_t(&connection - all_.data());
    connection.fd = connect_to(port_, int(index / kConnectionsPerSource));
    if (is_tls_) connection.tls.open(connection.fd);
    connection.wants_out = false;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = index}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
  }

  void flush(Connection& connection) {
    ssize_t sent = is_tls_ ? connection.tls.send(connection.out.data(), connection.out.size())
                           : ::send(connection.fd, connection.out.data(), connection.out.size(),
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
    // A broken connection shows up again on reading; there it is dealt with.
    if (sent > 0) connection.out.erase(0, size_t(sent));
    bool wants_out = !connection.out.empty();
    if (wants_out == connection.wants_out) return;
    connection.wants_out = wants_out;
    epoll_event event{.events = EPOLLIN | (wants_out ? EPOLLOUT : 0u),
                      .data = {.u64 = uint64_t(&connection - all_.data())}};
    epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
  }

  void read(Connection& connection) {
    char buffer[65536];
    ssize_t got = is_tls_ ? connection.tls.receive(buffer, sizeof buffer)
                          : recv(connection.fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return reopen(connection);
    connection.in.append(buffer, size_t(got));

    reading_ = &connection;
    size_t used = 0;
    for (;;) {
      Reply reply;
      size_t length = wire_.parse(std::string_view(connection.in).substr(used), reply);
      if (length == 0) break;
      if (connection.asking.empty()) throw std::runtime_error("a reply nobody asked for");
      int client = connection.asking.front();
      connection.asking.pop_front();
      on_reply_(client, reply);
      used += length;
    }
    reading_ = nullptr;
    connection.in.erase(0, used);
    if (!connection.out.empty()) flush(connection);
  }

  // The server has closed the connection: opens a new one and tells everybody who was waiting on it.
  void reopen(Connection& connection) {
    ++lost_;
    connection.tls.close();
    close(connection.fd);
    std::set<int> clients(connection.asking.begin(), connection.asking.end());
    connection.asking.clear();
    connection.in.clear();
    connection.out.clear();
    open(connection);
    Reply none;
    none.lost = true;
    for (int client : clients) on_reply_(client, none);
  }

  const Wire& wire_;
  int port_;
  bool is_tls_;
  OnReply on_reply_;
  int epoll_ = -1;
  std::vector<Connection> all_;
  Connection* reading_ = nullptr;
  long lost_ = 0;
};
