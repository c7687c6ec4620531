#include "http/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/check.h"
#include "http/certificate_names.h"
#include "http/peer.h"
#include "http/tls_context.h"

namespace turnstile::http {
namespace {

constexpr size_t kLargestRecord = SSL3_RT_MAX_PLAIN_LENGTH;
// New keys and the like, of which a client may send as many as it likes, each as dear to us as a request. No
// record that says something is larger.
constexpr size_t kMostWithoutAWord = 3 * kLargestRecord;

// What a name may consist of to be compared, logged and used as a node's name.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
}

const char* why_it_failed() {
  const unsigned long error = ERR_peek_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason ? reason : "the client has gone";
}

}  // namespace

// The socket as OpenSSL sees it.
struct TlsSession::Wire {
  static TlsSession& of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, int room) {
    TlsSession& session = of(bio);
    BIO_clear_retry_flags(bio);
    if (session.drained_) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const ssize_t count = ::recv(session.socket_, to, size_t(room), 0);
    if (count < 0) {
      if (errno == EINTR) return read(bio, to, room);
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        session.drained_ = true;
        BIO_set_retry_read(bio);
      }
      return -1;
    }
    session.at_end_ = count == 0;
    if (session.greeted_) session.without_a_word_ += size_t(count);
    if (session.without_a_word_ > kMostWithoutAWord) return -1;
    // Less than there was room for: that was all, unless the end is behind it.
    session.drained_ = count < room && !session.hung_up_;
    return int(count);
  }

  static int write(BIO* bio, const char* from, int count) {
    BIO_clear_retry_flags(bio);
    const ssize_t sent = ::send(of(bio).socket_, from, size_t(count), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return int(sent);
    if (errno == EINTR) return write(bio, from, count);
    if (errno == EAGAIN || errno == EWOULDBLOCK) BIO_set_retry_write(bio);
    return -1;
  }

  static long control(BIO* bio, int what, long, void*) {
    if (what == BIO_CTRL_EOF) return of(bio).at_end_;
    return what == BIO_CTRL_FLUSH || what == BIO_CTRL_DUP;
  }

  static BIO_METHOD* method() {
    static BIO_METHOD* const wire = [] {
      BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "turnstile socket");
      TS_CHECK(made, "a process that starts has memory");
      BIO_meth_set_read(made, &Wire::read);
      BIO_meth_set_write(made, &Wire::write);
      BIO_meth_set_ctrl(made, &Wire::control);
      return made;
    }();
    return wire;
  }
};

void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsSession::TlsSession(const TlsContext& context, int socket) : ssl_(context.new_session()), socket_(socket) {
  BIO* const bio = ssl_ ? BIO_new(Wire::method()) : nullptr;
  broken_ = bio == nullptr;
  if (broken_) return;
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

// Frees no session that others could resume: those are in tickets.
TlsSession::~TlsSession() = default;

TlsSession::Greeting TlsSession::greet(Peer& peer, const char*& problem) {
  problem = "no memory";
  if (broken_) return Greeting::failed;
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    greeted_ = learn_name(peer);
    if (!greeted_) problem = "the client's certificate has expired or has no name that can be used";
    ERR_clear_error();
    return greeted_ ? Greeting::done : Greeting::failed;
  }
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return Greeting::wants_input;
  if (error == SSL_ERROR_WANT_WRITE) return Greeting::wants_output;
  broken_ = true;
  problem = why_it_failed();
  const bool plain =
      ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_SSL && ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
  ERR_clear_error();
  return plain ? Greeting::plain_http : Greeting::failed;
}

// The certificate may come out of a ticket, and have expired since it was verified.
bool TlsSession::learn_name(Peer& peer) const {
  peer.tls = true;
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (!certificate) return true;
  if (SSL_get_verify_result(ssl_.get()) != X509_V_OK) return false;
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) return false;
  const std::vector<std::string> names = dns_names(certificate);
  std::string name = names.empty() ? common_name(certificate) : names.front();
  if (!is_plain_name(name)) return false;
  peer.certificate_name = std::move(name);
  return true;
}

bool TlsSession::is_resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

ssize_t TlsSession::receive(char* to, size_t room) {
  const int result = broken_ ? -1 : SSL_read(ssl_.get(), to, int(std::min(room, size_t(INT_MAX))));
  if (result > 0) {
    without_a_word_ = 0;
    return result;
  }
  const int error = broken_ ? SSL_ERROR_SSL : SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  if (error == SSL_ERROR_WANT_READ) {
    errno = EAGAIN;
    return -1;
  }
  broken_ = true;
  ERR_clear_error();
  errno = EPROTO;
  return -1;
}

ssize_t TlsSession::send(std::string_view bytes) {
  const int result =
      broken_ ? -1 : SSL_write(ssl_.get(), bytes.data(), int(std::min(bytes.size(), size_t(INT_MAX))));
  if (result > 0) return result;
  if (!broken_ && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_WRITE) {
    errno = EAGAIN;
    return -1;
  }
  broken_ = true;
  ERR_clear_error();
  errno = EPROTO;
  return -1;
}

// One record: its parts are encrypted as one. Nothing of it must be smaller at a second try, and nothing is,
// because what is to be sent only grows.
ssize_t TlsSession::send(std::span<const iovec> parts) {
  thread_local std::array<char, kLargestRecord> record;
  size_t size = 0;
  for (const iovec& part : parts) {
    const size_t count = std::min(part.iov_len, record.size() - size);
    std::memcpy(record.data() + size, part.iov_base, count);
    size += count;
  }
  return send(std::string_view(record.data(), size));
}

bool TlsSession::is_drained() const { return drained_ && SSL_has_pending(ssl_.get()) == 0; }

void TlsSession::end_output() {
  if (broken_ || !greeted_) return;
  if (SSL_shutdown(ssl_.get()) < 0) ERR_clear_error();
}

}  // namespace turnstile::http
