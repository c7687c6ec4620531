// TLS on one connection: its handshake, and bytes through it.
//
// OpenSSL talks to the socket through a BIO of our own, and not through SSL_set_fd(): so it knows, like the
// rest of this folder, when a read has taken all that the kernel had, and a request costs one recv() and not
// two (decision 0028).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

struct bio_st;
struct ssl_st;

namespace turnstile::http {

class TlsContext;
struct Peer;

// Not its job: when. It never blocks and never waits. Threads: the loop's.
class TlsSession {
 public:
  enum class Greeting {
    done,
    wants_input,   // the client has to say more
    wants_output,  // the kernel has no room
    plain_http,    // the client has sent a request instead
    failed,
  };

  TlsSession(const TlsContext& context, int socket);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // One step of the handshake, as far as it goes with what has come. After `done`, `peer` has what it showed.
  // `problem` is why it failed, for the log.
  Greeting greet(Peer& peer, const char*& problem);
  bool is_resumed() const;

  // As recv(2), send(2) and writev(2) on a socket that does not block. What was not sent must be tried again,
  // and may have grown meanwhile, but not changed.
  ssize_t receive(char* to, size_t room);
  ssize_t send(std::string_view bytes);
  ssize_t send(std::span<const iovec> parts);

  // The kernel may have something again; `hung_up`: and behind it, the end.
  void note_readable(bool hung_up) {
    drained_ = false;
    hung_up_ = hung_up;
  }
  // A read would find nothing that has not come since.
  bool is_drained() const;
  // Tells the peer that nothing follows, if that can be done at once.
  void end_output();

 private:
  struct Free {
    void operator()(ssl_st* session) const;
  };
  struct Wire;  // the BIO's functions

  bool learn_name(Peer& peer) const;

  std::unique_ptr<ssl_st, Free> ssl_;
  const int socket_;
  bool drained_ = false;  // the last recv() has taken all that there was
  bool hung_up_ = false;  // the end can be read, behind what there is
  bool at_end_ = false;   // ... and has been
  bool broken_ = false;   // OpenSSL must not be asked for more
  bool greeted_ = false;
  size_t without_a_word_ = 0;  // bytes that have come since the last that said something
};

}  // namespace turnstile::http
