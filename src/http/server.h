// The HTTP server: listeners, loops and their life. Whoever uses this folder needs this header and http.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "http/http.h"
#include "http/statistics.h"
#include "http/tls_context.h"

namespace turnstile::http {

class Acceptor;
class EventLoop;
class Listener;
struct Room;

struct ServerSettings {
  // "HOST:PORT", "[::1]:PORT", "unix:PATH"; port 0 = any. With "https://" before it, or by `tls`: TLS.
  std::vector<std::string> listen;
  unsigned loops = 1;  // threads, 1 to 255
  Limits limits;
  HandlerFactory handler;  // called once for each loop, in start(), on the caller's thread
  // Sockets that listen already. If there are any, `listen` is not looked at.
  std::vector<UniqueFd> passed = {};
  // With a certificate: every TCP listener speaks TLS, but those that are told "http://".
  TlsFiles tls = {};
};

// Threads: start(), stop_accepting() and shutdown() by one thread that is not a loop's; the rest by any.
class Server {
 public:
  explicit Server(ServerSettings settings);
  ~Server();  // as shutdown(0)

  // Binds all addresses, then starts the loops. After an error nothing is bound.
  Result<void> start();

  // Where it really listens, in the order of the settings.
  const std::vector<std::string>& addresses() const { return addresses_; }
  size_t loops() const { return loops_.size(); }
  Loop& loop(size_t index);
  const Statistics& statistics() const { return statistics_; }

  // Reads certificate, key and CA again, for the connections that come. After an error all is as before. By
  // any thread.
  Result<void> reload_tls();

  // The DNS names in the certificate that was read at the start; none without TLS.
  std::vector<std::string> certificate_names() const;

  // Closes the listeners; open connections go on.
  void stop_accepting();
  // Stops accepting, closes idle connections and streams, waits at most `patience` for answers under way
  // (waiting requests too), then closes the rest, without on_closed(), and ends the threads.
  void shutdown(Duration patience);

 private:
  Result<std::vector<Listener>> open_listeners();
  Result<void> load_tls(const std::vector<Listener>& listeners);
  Result<Room> find_room() const;

  ServerSettings settings_;
  Statistics statistics_;
  std::vector<std::string> addresses_;
  std::unique_ptr<TlsContext> tls_;  // none: no listener needs it
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::unique_ptr<Acceptor> acceptor_;
  bool running_ = false;
};

}  // namespace turnstile::http
