#include "faulty_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/check.h"

namespace turnstile {
namespace {

using std::chrono::steady_clock;

sockaddr_in ipv4(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  TS_CHECK(::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, "an address in digits");
  address.sin_port = htons(uint16_t(port));
  return address;
}

int connect_to(const std::string& host, int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = ipv4(host, port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return -1;
  }
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

// A peer that has gone makes no difference here: the link notices when it reads.
void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(size_t(count));
  }
}

}  // namespace

// One connection of the client's and its counterpart.
struct FaultyProxy::Link {
  int client = -1, server = -1;
  std::vector<int> replaced;         // connections to the server that a repeat has taken over from
  std::optional<FaultWay> dropping;  // what comes this way is read and thrown away
  std::optional<FaultWay> late_way;  // what comes this way waits until `late_until`
  steady_clock::time_point late_until{};
  std::string late;  // what is delivered then, first
};

FaultyProxy::FaultyProxy(const std::string& server_host, int server_port)
    : server_host_(server_host), server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = ipv4("127.0.0.1", 0);
  socklen_t size = sizeof address;
  TS_CHECK(
      ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener_, 64) == 0,
      "a free port on loopback");
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  bell_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { run(); });
}

FaultyProxy::~FaultyProxy() {
  ends_ = true;
  ::eventfd_write(bell_, 1);
  thread_.join();
  for (Link& link : links_) close(link);
  ::close(listener_);
  ::close(bell_);
}

void FaultyProxy::arm(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  happened_ = false;
  passed_ = 0;
  sent_.clear();
}

bool FaultyProxy::disarm() {
  const std::lock_guard lock(mutex_);
  fault_ = {};
  return happened_;
}

void FaultyProxy::await_late_bytes() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return late_ == 0; });
}

void FaultyProxy::run() {
  while (!ends_) {
    std::vector<pollfd> polled = {{listener_, POLLIN, 0}, {bell_, POLLIN, 0}};
    const auto now = steady_clock::now();
    int timeout = -1;
    for (Link& link : links_) {
      if (link.late_way && link.late_until <= now) {
        send_all(*link.late_way == FaultWay::request ? link.server : link.client, link.late);
        link.late.clear();
        link.late_way.reset();
        const std::lock_guard lock(mutex_);
        --late_;
        changed_.notify_all();
      }
      if (link.late_way) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(link.late_until - now).count();
        timeout = timeout < 0 ? int(left) : std::min(timeout, int(left));
      }
      const bool request_waits = link.late_way == FaultWay::request,
                 answer_waits = link.late_way == FaultWay::answer;
      polled.push_back({request_waits ? -1 : link.client, POLLIN, 0});
      polled.push_back({answer_waits ? -1 : link.server, POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), timeout) <= 0) continue;
    size_t at = 2;
    for (auto link = links_.begin(); link != links_.end();) {
      const bool from_client = polled[at++].revents != 0, from_server = polled[at++].revents != 0;
      const bool goes_on = (!from_client || forward(*link, FaultWay::request)) &&
                           (!from_server || forward(*link, FaultWay::answer));
      if (!goes_on) close(*link);
      link = goes_on ? std::next(link) : links_.erase(link);
    }
    if (polled[0].revents != 0) accept_one();
  }
}

void FaultyProxy::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int yes = 1;
  ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const int server = connect_to(server_host_, server_port_);
  if (server < 0) {
    ::close(client);
    return;
  }
  links_.emplace_back();
  links_.back().client = client;
  links_.back().server = server;
}

bool FaultyProxy::forward(Link& link, FaultWay way) {
  const bool request = way == FaultWay::request;
  char buffer[16 * 1024];
  const ssize_t count = ::recv(request ? link.client : link.server, buffer, sizeof buffer, 0);
  if (count <= 0) return false;
  if (link.dropping == way) return true;
  std::string_view bytes(buffer, size_t(count));
  const std::lock_guard lock(mutex_);
  size_t before = bytes.size();  // so many of them pass before it happens
  const bool here = fault_.kind != FaultKind::none && !happened_ && fault_.way == way &&
                    passed_ + bytes.size() >= fault_.at;
  if (here) before = fault_.at > passed_ ? fault_.at - passed_ : 0;
  if (fault_.way == way) passed_ += bytes.size();
  if (request) sent_.append(bytes.substr(0, before));
  send_all(request ? link.server : link.client, bytes.substr(0, before));
  bytes.remove_prefix(before);
  if (!here) return true;
  happened_ = true;
  if (fault_.kind == FaultKind::delay) link.late = bytes;
  if (!misbehave(link)) return false;
  if (fault_.kind == FaultKind::repeat) send_all(link.server, bytes);
  return true;
}

bool FaultyProxy::misbehave(Link& link) {
  switch (fault_.kind) {
    case FaultKind::cut:
      return false;
    case FaultKind::drop:
      link.dropping = fault_.way;
      return true;
    case FaultKind::delay:
      link.late_way = fault_.way;
      link.late_until = steady_clock::now() + fault_.delay;
      ++late_;
      return true;
    case FaultKind::repeat:
      link.replaced.push_back(link.server);
      link.server = connect_to(server_host_, server_port_);
      send_all(link.server, sent_);
      return link.server >= 0;
    case FaultKind::none:
      break;
  }
  return true;
}

void FaultyProxy::close(Link& link) {
  if (link.late_way) {
    const std::lock_guard lock(mutex_);
    --late_;
    changed_.notify_all();
  }
  ::close(link.client);
  ::close(link.server);
  for (const int server : link.replaced) ::close(server);
}

}  // namespace turnstile
