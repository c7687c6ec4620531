#include "client/http_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

namespace turnstile::client {
namespace {

constexpr long kMaxConnectMs = 5'000, kMaxConnectOfSeveralMs = 2'000;
constexpr Milliseconds kLongest{60'000};  // of one poll; it is entered again
// A connection that had its last request so short a time ago is not looked at before the next one: a server
// ends those that are idle for long, and one that stops just now can do so during a call as well.
constexpr Milliseconds kFresh{20};

}  // namespace

HttpConnection::HttpConnection(std::string server, const ServerUrl& url, const ClientSettings& settings,
                               const std::string& credential, uint64_t generation)
    : server_(std::move(server)),
      base_(url.base),
      tls_(url.tls),
      generation_(generation),
      connect_limit_(settings.servers.size() > 1 ? kMaxConnectOfSeveralMs : kMaxConnectMs),
      multi_(make_multi()),
      easy_(make_easy(url, settings)) {
  const size_t authority = base_.find("://") + 3;
  const size_t path = std::min(base_.find('/', authority), base_.size());
  prefix_ = base_.substr(path);
  fixed_head_ = fmt::format(" HTTP/1.1\r\nHost: {}\r\n", base_.substr(authority, path - authority));
  if (!credential.empty()) fixed_head_ += fmt::format("Authorization: Bearer {}\r\n", credential);
  curl_easy_setopt(easy_.get(), CURLOPT_ERRORBUFFER, detail_.data());
  curl_easy_setopt(easy_.get(), CURLOPT_URL, base_.c_str());
  curl_easy_setopt(easy_.get(), CURLOPT_CONNECT_ONLY, 1L);
}

HttpConnection::~HttpConnection() { curl_multi_remove_handle(multi_.get(), easy_.get()); }

std::expected<Answer, TransportError> HttpConnection::exchange(const Exchange& exchange) {
  const Steady::time_point now = Steady::now();
  deadline_ = exchange.timeout.count() > 0 ? now + exchange.timeout : Steady::time_point::max();
  if (std::exchange(reusable_, false) && now - answered_at_ > kFresh && closed_meanwhile())
    socket_ = CURL_SOCKET_BAD;
  if (socket_ == CURL_SOCKET_BAD) {
    if (const CURLcode code = connect(exchange); code != CURLE_OK)
      return std::unexpected(error_of(code, false, detail_.data()));
  }
  write_request(exchange);
  AnswerParser parser;
  CURLcode code = send(exchange);
  if (code == CURLE_OK) code = receive(exchange, parser);
  if (code == CURLE_FILESIZE_EXCEEDED) {
    return std::unexpected(TransportError{Fault::too_large, true, "the answer is too large"});
  }
  if (code == CURLE_WEIRD_SERVER_REPLY) {
    return Answer{.status = 200, .body = {}};  // no HTTP at all, and so no answer of Turnstile's
  }
  if (code != CURLE_OK) {
    TransportError error = error_of(code, true, detail_.data());
    const bool ended = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING;
    if (tls_ && ended && !answered_ && !error.message.starts_with("TLS"))
      error.message =
          "TLS: ended behind the handshake, as a server does that wants a certificate of its client";
    return std::unexpected(std::move(error));
  }
  answered_ = true;
  answered_at_ = now;
  reusable_ = parser.keep_alive();
  return parser.take();
}

CURLcode HttpConnection::connect(const Exchange& exchange) {
  CURLM* const multi = multi_.get();
  CURL* const easy = easy_.get();
  curl_multi_remove_handle(multi, easy);  // closes what it had
  answered_ = false;
  const long limit = exchange.timeout.count() > 0 ? std::min(long(exchange.timeout.count()), connect_limit_)
                                                  : connect_limit_;
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, limit);
  curl_multi_add_handle(multi, easy);
  const std::stop_callback wake(exchange.stop, [multi] { curl_multi_wakeup(multi); });
  while (!exchange.stop.stop_requested()) {
    int running = 0, left = 0;
    if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_COULDNT_CONNECT;
    if (running > 0) {
      curl_multi_poll(multi, nullptr, 0, int(kLongest.count()), nullptr);
      continue;
    }
    const CURLMsg* const message = curl_multi_info_read(multi, &left);
    if (message == nullptr) return CURLE_COULDNT_CONNECT;
    if (message->data.result != CURLE_OK) return message->data.result;
    const CURLcode code = curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket_);
    if (code == CURLE_OK && !tls_) fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) & ~O_NONBLOCK);
    receive_timeout_ = Milliseconds(0);
    return code;
  }
  return CURLE_ABORTED_BY_CALLBACK;
}

// A kept connection on which something is to be read was closed by the server: it owes us nothing.
bool HttpConnection::closed_meanwhile() const {
  pollfd item{.fd = socket_, .events = POLLIN, .revents = 0};
  return poll(&item, 1, 0) != 0;
}

void HttpConnection::write_request(const Exchange& exchange) {
  request_.assign(exchange.post ? "POST " : "GET ")
      .append(prefix_)
      .append(exchange.target)
      .append(fixed_head_);
  if (exchange.post) {
    const fmt::format_int length(exchange.body.size());
    request_.append("Content-Type: application/json\r\nContent-Length: ")
        .append(length.data(), length.size());
    request_.append("\r\n");
  }
  request_.append("\r\n").append(exchange.body);
}

CURLcode HttpConnection::send(const Exchange& exchange) {
  for (std::string_view rest = request_; !rest.empty();) {
    size_t sent = 0;
    CURLcode code = send_some(rest, sent);
    rest.remove_prefix(sent);
    if (code == CURLE_AGAIN) code = wait(POLLOUT, exchange);
    if (code != CURLE_OK) return code;
  }
  return CURLE_OK;
}

CURLcode HttpConnection::send_some(std::string_view bytes, size_t& sent) {
  if (tls_) return curl_easy_send(easy_.get(), bytes.data(), bytes.size(), &sent);
  const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? CURLE_AGAIN : CURLE_SEND_ERROR;
  sent = size_t(count);
  return CURLE_OK;
}

CURLcode HttpConnection::receive_some(std::span<char> buffer, size_t& got) {
  if (tls_) return curl_easy_recv(easy_.get(), buffer.data(), buffer.size(), &got);
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? CURLE_AGAIN : CURLE_RECV_ERROR;
  got = size_t(count);
  return CURLE_OK;
}

CURLcode HttpConnection::await_some(std::span<char> buffer, size_t& got) {
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? CURLE_AGAIN : CURLE_RECV_ERROR;
  got = size_t(count);
  return CURLE_OK;
}

// The socket is a blocking one, with a time-out, so that a call that cannot be stopped takes one recv.
void HttpConnection::set_receive_timeout(Milliseconds timeout) {
  if (tls_ || timeout == receive_timeout_) return;
  receive_timeout_ = timeout;
  const timeval time{.tv_sec = timeout.count() / 1000, .tv_usec = timeout.count() % 1000 * 1000};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

CURLcode HttpConnection::receive(const Exchange& exchange, AnswerParser& parser) {
  std::array<char, 16 << 10> buffer;
  bool await = !tls_ && !exchange.stop.stop_possible();
  bool look_first = tls_;  // TLS may have bytes that the socket no longer shows
  if (await) set_receive_timeout(exchange.timeout);
  for (;;) {
    if (!await && !look_first) {
      if (const CURLcode code = wait(POLLIN, exchange); code != CURLE_OK) return code;
    }
    size_t got = 0;
    const CURLcode code = std::exchange(await, false) ? await_some(buffer, got) : receive_some(buffer, got);
    look_first = code == CURLE_OK && got == buffer.size();
    if (code == CURLE_AGAIN) continue;
    if (code != CURLE_OK) return code;
    const auto fed = got > 0 ? parser.feed({buffer.data(), got}) : parser.end();
    if (fed == AnswerParser::Fed::done) return CURLE_OK;
    if (fed == AnswerParser::Fed::too_large) return CURLE_FILESIZE_EXCEEDED;
    if (got == 0) return CURLE_GOT_NOTHING;
    if (fed == AnswerParser::Fed::wrong) return CURLE_WEIRD_SERVER_REPLY;
  }
}

CURLcode HttpConnection::wait(short events, const Exchange& exchange) {
  CURLM* const multi = multi_.get();
  std::optional<std::stop_callback<std::function<void()>>> wake;
  if (exchange.stop.stop_possible()) wake.emplace(exchange.stop, [multi] { curl_multi_wakeup(multi); });
  for (;;) {
    if (exchange.stop.stop_requested()) return CURLE_ABORTED_BY_CALLBACK;
    Milliseconds left = kLongest;
    if (deadline_ != Steady::time_point::max()) {
      left = std::min(left, std::chrono::ceil<Milliseconds>(deadline_ - Steady::now()));
    }
    if (left.count() <= 0) return CURLE_OPERATION_TIMEDOUT;
    if (!wake) {
      pollfd item{.fd = socket_, .events = events, .revents = 0};
      if (poll(&item, 1, int(left.count())) > 0) return CURLE_OK;
      continue;
    }
    curl_waitfd item{.fd = socket_,
                     .events = short(events == POLLIN ? CURL_WAIT_POLLIN : CURL_WAIT_POLLOUT),
                     .revents = 0};
    curl_multi_poll(multi, &item, 1, int(left.count()), nullptr);
    if (item.revents != 0) return CURLE_OK;
  }
}

}  // namespace turnstile::client
