#include "etcd/line_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace turnstile::etcd {
namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};

struct HostAndPort {
  std::string host, port;
};

HostAndPort split(std::string_view peer) {
  peer.remove_prefix(std::min(peer.size(), peer.find(':') + 1));
  const size_t colon = peer.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view host = peer.substr(0, colon);
  for (const auto& [open, close] : {std::pair<std::string_view, std::string_view>{"%5B", "%5D"}, {"[", "]"}})
    if (host.starts_with(open) && host.ends_with(close))
      host = host.substr(open.size(), host.size() - open.size() - close.size());
  return {std::string(host), std::string(peer.substr(colon + 1))};
}

bool is_address(const std::string& host) {
  in6_addr space;
  return ::inet_pton(AF_INET, host.c_str(), &space) == 1 || ::inet_pton(AF_INET6, host.c_str(), &space) == 1;
}

// Whether one side will not have the other, so that trying again does not help: the peer has said so in an
// alert, or we do not trust its certificate. What else may end a handshake passes.
bool is_refusal(unsigned long error) {
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return true;
  return reason > SSL_AD_REASON_OFFSET && reason != SSL_AD_REASON_OFFSET + SSL_AD_INTERNAL_ERROR;
}

}  // namespace

std::string host_of(std::string_view authority) {
  std::string_view host = authority.substr(0, authority.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

LineTls make_line_tls(const Options& options) {
  LineTls none{nullptr, &SSL_CTX_free}, tls{SSL_CTX_new(TLS_client_method()), &SSL_CTX_free};
  if (!tls) return none;
  SSL_CTX_set_min_proto_version(tls.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(tls.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(tls.get(), kHttp2, sizeof kHttp2);
  const bool trusts = options.ca_file.empty()
                          ? SSL_CTX_set_default_verify_paths(tls.get()) == 1
                          : SSL_CTX_load_verify_file(tls.get(), options.ca_file.c_str()) == 1;
  const bool shows =
      options.cert_file.empty() ||
      (SSL_CTX_use_certificate_chain_file(tls.get(), options.cert_file.c_str()) == 1 &&
       SSL_CTX_use_PrivateKey_file(tls.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) == 1);
  ERR_clear_error();
  return trusts && shows ? std::move(tls) : std::move(none);
}

std::unique_ptr<LineSocket> LineSocket::connect(std::string_view peer, SSL_CTX* tls, const std::string& host,
                                                SteadyTime until) {
  auto made = dial(peer, until);
  if (!made || (tls && !made->greet(tls, host, until))) return nullptr;
  return made;
}

std::optional<std::string> LineSocket::refusal(std::string_view peer, SSL_CTX* tls, const std::string& host,
                                               SteadyTime until) {
  const auto made = dial(peer, until);
  if (!made) return std::nullopt;
  if (made->greet(tls, host, until)) (void)made->receive(until);
  if (made->refusal_.empty()) return std::nullopt;
  return made->refusal_;
}

std::unique_ptr<LineSocket> LineSocket::dial(std::string_view peer, SteadyTime until) {
  const HostAndPort where = split(peer);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &found) != 0) return nullptr;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, &::freeaddrinfo);
  UniqueFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return nullptr;
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const int result = ::connect(socket.get(), address->ai_addr, address->ai_addrlen);
  if (result != 0 && errno != EINPROGRESS) return nullptr;
  auto made = std::unique_ptr<LineSocket>(new LineSocket(std::move(socket)));
  if (result != 0 && !made->wait(POLLOUT, until)) return nullptr;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(made->socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
    return nullptr;
  return made;
}

bool LineSocket::greet(SSL_CTX* tls, const std::string& host, SteadyTime until) {
  tls_.reset(SSL_new(tls));
  if (!tls_ || SSL_set_fd(tls_.get(), socket_.get()) != 1) return false;
  if (is_address(host)) {
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str()) != 1) return false;
  } else if (SSL_set1_host(tls_.get(), host.c_str()) != 1 ||
             SSL_set_tlsext_host_name(tls_.get(), host.c_str()) != 1) {
    return false;
  }
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(tls_.get());
    if (result == 1) break;
    if (!wait_for_tls(result, until)) return false;
  }
  const unsigned char* agreed = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(tls_.get(), &agreed, &size);
  return std::string_view(reinterpret_cast<const char*>(agreed), size) == "h2";
}

bool LineSocket::wait(short events, SteadyTime until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd one{socket_.get(), events, 0};
    const int ready = ::poll(&one, 1, int(std::clamp<int64_t>(left.count(), 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno == EINTR) continue;
    timed_out_ = ready == 0;
    if (ready < 0 || std::chrono::steady_clock::now() >= until) return false;
  }
}

bool LineSocket::wait_for_tls(int result, SteadyTime until) {
  const int error = SSL_get_error(tls_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return wait(POLLIN, until);
  if (error == SSL_ERROR_WANT_WRITE) return wait(POLLOUT, until);
  if (const unsigned long first = ERR_peek_error(); is_refusal(first)) {
    const char* const text = ERR_reason_error_string(first);
    refusal_ = text ? text : "TLS does not go on";
  }
  ERR_clear_error();
  return false;
}

bool LineSocket::send(std::string_view bytes, SteadyTime until) {
  timed_out_ = false;
  while (!bytes.empty()) {
    ssize_t sent = 0;
    if (tls_) {
      ERR_clear_error();
      sent = SSL_write(tls_.get(), bytes.data(), int(std::min<size_t>(bytes.size(), 1 << 30)));
      if (sent <= 0 && !wait_for_tls(int(sent), until)) return false;
    } else {
      sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) {
        if (!wait(POLLOUT, until)) return false;
      } else if (sent < 0 && errno != EINTR) {
        return false;
      }
    }
    if (sent > 0) bytes.remove_prefix(size_t(sent));
  }
  return true;
}

std::span<const uint8_t> LineSocket::receive(SteadyTime until) {
  timed_out_ = false;
  for (;;) {
    ssize_t got = 0;
    if (tls_) {
      ERR_clear_error();
      got = SSL_read(tls_.get(), received_, sizeof received_);
      if (got <= 0 && !wait_for_tls(int(got), until)) return {};
    } else {
      // Nothing is there yet, nearly always: the answer to what has just been sent takes a while.
      if (!wait(POLLIN, until)) return {};
      got = ::recv(socket_.get(), received_, sizeof received_, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return {};
    }
    if (got > 0) return {received_, size_t(got)};
  }
}

}  // namespace turnstile::etcd
