// TLS of the generator's connections (--tls), if it is built with -DLOCKBENCH_TLS -lssl -lcrypto: it must
// also be possible to build it where OpenSSL is not.
//
// The handshake blocks: it is over before anything is measured.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>

#ifdef LOCKBENCH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>

struct Tls {
  SSL* session = nullptr;

  void open(int fd) {
    static SSL_CTX* const context = [] {
      std::signal(SIGPIPE, SIG_IGN);
      SSL_CTX* made = SSL_CTX_new(TLS_client_method());
      SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
      return made;
    }();
    session = SSL_new(context);
    SSL_set_fd(session, fd);
    if (SSL_connect(session) != 1) throw std::runtime_error("the TLS handshake failed");
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  void close() {
    SSL_free(session);
    session = nullptr;
  }
  ssize_t send(const char* data, size_t size) {
    return result(size == 0 ? 0 : SSL_write(session, data, int(size)));
  }
  ssize_t receive(char* data, size_t size) { return result(SSL_read(session, data, int(size))); }

 private:
  ssize_t result(int count) {
    if (count > 0) return count;
    const int error = SSL_get_error(session, count);
    ERR_clear_error();
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return 0;
    errno = EAGAIN;
    return -1;
  }
};
#else
struct Tls {
  void open(int) { throw std::runtime_error("built without TLS: -DLOCKBENCH_TLS -lssl -lcrypto"); }
  void close() {}
  ssize_t send(const char*, size_t) { return 0; }
  ssize_t receive(char*, size_t) { return 0; }
};
#endif
