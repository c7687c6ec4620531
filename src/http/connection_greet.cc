// The TLS handshake of a connection, before its first request.
#include "base/check.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/event_loop.h"
#include "http/tls_context.h"

namespace turnstile::http {

// The session is made when something has come: who connects and says nothing costs no more than without TLS.
void Connection::greet() {
  if (state_ != State::greeting || write_pending_) return;
  const char* problem = nullptr;
  switch (channel_.begin_tls(*tls_).greet(*peer_, problem)) {
    case TlsSession::Greeting::done:
      return greeted();
    case TlsSession::Greeting::wants_input:
      readable_ = false;
      return;
    case TlsSession::Greeting::wants_output:
      write_pending_ = true;
      loop_.poller().change(channel_.fd(), EPOLLIN | EPOLLRDHUP | EPOLLOUT | EPOLLET, *this);
      return;
    case TlsSession::Greeting::plain_http:
      channel_.drop_tls();
      refuse(400, "This port speaks TLS: ask it with https:// and not http://.");
      return proceed();
    case TlsSession::Greeting::failed:
      return fail_greeting(problem);
  }
}

void Connection::greeted() {
  auto& counter =
      channel_.begin_tls(*tls_).is_resumed() ? loop_.statistics().tls_resumed : loop_.statistics().tls_full;
  counter.fetch_add(1, std::memory_order_relaxed);
  enter(State::reading);
  if (is_refused_) refuse_as_too_many();
  read_deadline_ = later(loop_.now(), loop_.limits().header_timeout);
  proceed();
}

// OpenSSL has told the client why, and the client may read it before the kernel may send a reset.
void Connection::fail_greeting(const char* problem) {
  loop_.statistics().tls_failed.fetch_add(1, std::memory_order_relaxed);
  loop_.note_failed_greeting(peer_->address, problem);
  channel_.drop_tls();
  wants_linger_ = true;
  enter(State::ending);
  proceed();
}

}  // namespace turnstile::http
