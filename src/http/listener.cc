#include "http/listener.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

namespace turnstile::http {
namespace {

constexpr std::string_view kUnixPrefix = "unix:", kTlsPrefix = "https://", kPlainPrefix = "http://";
constexpr mode_t kUnixMode = 0660;
constexpr std::string_view kInUse = "another program already does";

std::unexpected<Error> cannot_listen(std::string_view address, int error) {
  if (error == EADDRINUSE)
    return fail(fmt::format("Cannot listen on {}: {}. Stop it or choose another address.", address, kInUse));
  return fail(fmt::format("Cannot listen on {}: {}.", address, std::strerror(error)));
}

std::unexpected<Error> not_an_address(std::string_view text) {
  return fail(fmt::format(
      "\"{}\" is not an address to listen on; give HOST:PORT, [IPV6-ADDRESS]:PORT or unix:PATH.", text));
}

std::string_view without_scheme(std::string_view address) {
  for (const std::string_view prefix : {kTlsPrefix, kPlainPrefix})
    if (address.starts_with(prefix)) return address.substr(prefix.size());
  return address;
}

bool set(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// Peers that vanish without a word are found, which matters to bonds. Keep-alive probes find those that are
// idle. While bytes are under way the kernel does not probe, it retransmits, for a quarter of an hour; the
// user timeout ends both (with it set, it and not a number of probes decides when keep-alive gives up). It
// counts from the last sign of life, or from the first byte that was not acknowledged; a stream gets a
// comment every ten seconds. So a peer is given up 20 to 45 s after the cut, and an outage of 20 s is
// survived.
constexpr int kIdleSeconds = 10, kProbeSeconds = 5, kUserTimeoutSeconds = 30;

// Accepted sockets inherit these.
void set_tcp_options(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * kUserTimeoutSeconds);
}

std::string unix_address(const sockaddr_storage& bound, socklen_t size) {
  const auto& address = reinterpret_cast<const sockaddr_un&>(bound);
  const size_t length = size - offsetof(sockaddr_un, sun_path);
  if (size <= offsetof(sockaddr_un, sun_path) || address.sun_path[0] == '\0') return {};  // it has no file
  return std::string(kUnixPrefix) + std::string(address.sun_path, ::strnlen(address.sun_path, length));
}

// The file of a server that died without removing it is removed; anything else in the way is an error.
Result<void> clear_way(const std::string& path, const sockaddr_un& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode))
    return fail(
        fmt::format("Cannot listen on unix:{}: a file that is not a socket is there. Move it away.", path));
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() < 0) return cannot_listen("unix:" + path, errno);
  const int result = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result == 0 || errno != ECONNREFUSED)
    return cannot_listen("unix:" + path, result == 0 ? EADDRINUSE : errno);
  ::unlink(path.c_str());
  return {};
}

}  // namespace

bool says_in_use(const Error& error) { return error.message.find(kInUse) != std::string::npos; }

std::string bound_address(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return {};
  if (bound.ss_family == AF_UNIX) return unix_address(bound, size);
  if (bound.ss_family != AF_INET && bound.ss_family != AF_INET6) return {};
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return bound.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool is_loopback(std::string_view address) {
  if (address.starts_with(kUnixPrefix)) return true;
  address = without_scheme(address);
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

Result<Listener> Listener::open(std::string_view address, bool tls) {
  const std::string_view rest = without_scheme(address);
  if (rest.size() != address.size()) {
    if (rest.starts_with(kUnixPrefix)) return not_an_address(address);
    tls = address.starts_with(kTlsPrefix);
  }
  Result<Listener> listener = open_plain(rest);
  if (listener) listener->tls_ = tls && listener->family_ != AF_UNIX;
  return listener;
}

Result<Listener> Listener::open_plain(std::string_view address) {
  if (address.starts_with(kUnixPrefix)) return open_unix(std::string(address.substr(kUnixPrefix.size())));
  const size_t colon = address.rfind(':');
  if (colon == address.npos) return not_an_address(address);
  std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == host.npos) return not_an_address(address);
  } else if (host.find(':') != host.npos) {
    return not_an_address(address);  // an IPv6 address without brackets
  }
  const bool is_number = std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  if (port.empty() || port.size() > 5 || !is_number || std::stoi(std::string(port)) > 65535)
    return not_an_address(address);
  return open_tcp(address, host.empty() || host == "*" ? "0.0.0.0" : std::string(host), std::string(port));
}

Result<Listener> Listener::open_tcp(std::string_view address, const std::string& host,
                                    const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return fail(
        fmt::format("Cannot listen on {}: the host is not known ({}).", address, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);

  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return cannot_listen(address, errno);
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (found->ai_family == AF_INET6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set_tcp_options(fd.get());
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return cannot_listen(address, errno);
  std::string bound = bound_address(fd.get());
  return Listener(std::move(fd), found->ai_family, std::move(bound));
}

Result<Listener> Listener::open_unix(const std::string& path) {
  const std::string text = std::string(kUnixPrefix) + path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) return not_an_address(text);
  if (path.size() >= sizeof address.sun_path)
    return fail(fmt::format("Cannot listen on {}: the path is longer than {} bytes.", text,
                            sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  if (auto cleared = clear_way(path, address); !cleared) return std::unexpected(cleared.error());

  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return cannot_listen(text, errno);
  // The mode is set before bind(), so that there is no moment at which others may connect; again after it,
  // because bind() takes the umask off.
  ::fchmod(fd.get(), kUnixMode);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return cannot_listen(text, errno);
  if (::chmod(path.c_str(), kUnixMode) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return cannot_listen(text, errno);
  return Listener(std::move(fd), AF_UNIX, text);
}

Result<Listener> Listener::adopt(UniqueFd fd, bool tls) {
  std::string address = bound_address(fd.get());
  if (address.empty())
    return fail("A socket that was passed is neither TCP's nor a unix socket with a path.");
  const int family = address.starts_with(kUnixPrefix) ? AF_UNIX
                     : address.starts_with('[')       ? AF_INET6
                                                      : AF_INET;
  if (family != AF_UNIX) set_tcp_options(fd.get());
  Listener listener(std::move(fd), family, std::move(address), false);
  listener.tls_ = tls && family != AF_UNIX;
  return listener;
}

void Listener::close() {
  if (!fd_.is_open()) return;
  if (family_ == AF_UNIX && own_) ::unlink(address_.c_str() + kUnixPrefix.size());
  fd_.reset();
}

}  // namespace turnstile::http
