// What all TLS connections of a server have in common: certificate, key, whose clients are believed, and
// which versions and ciphers are spoken at all.
//
// A file of its own, because it is all that is policy; a connection's bytes are in tls_session.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/sync.h"

struct ssl_ctx_st;
struct ssl_st;

namespace turnstile::http {

// Where to read them; all are PEM.
struct TlsFiles {
  std::string certificate;  // the server's own first, then those that lead to its CA
  std::string key;
  std::string client_ca;  // empty: clients are not asked for a certificate
};

// Reads the files, and again when told so: connections that are open keep what they began with.
//
// TLS 1.2 and 1.3, only ciphers with forward secrecy and authentication, no renegotiation, no compression, no
// early data. Sessions are resumed by tickets, whose keys change by time (ticket_keys.h) and with the files:
// so a CA that is no longer believed in is forgotten at once. Threads: any.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> load(TlsFiles files, const TimeSource& source = machine_time());
  ~TlsContext();

  // After an error everything is as before.
  Result<void> reload();
  // The DNS names in the certificate.
  std::vector<std::string> names() const;
  // A session of the newest files; the caller frees it. Null: no memory.
  ssl_st* new_session() const;

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  using Handle = std::unique_ptr<ssl_ctx_st, Free>;

  TlsContext(TlsFiles files, const TimeSource& source);
  Result<Handle> read() const;

  const TlsFiles files_;
  const TimeSource& source_;
  mutable Mutex mutex_;
  Handle newest_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::http
