// Takes connections from the listeners and deals them out to the loops.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <memory>
#include <span>
#include <vector>

#include "http/asio.h"
#include "http/event_loop.h"
#include "http/listener.h"

namespace turnstile::http {

// One for the whole server, so that connections are dealt evenly, one by one, whoever is busy.
//
// Threads: that of the first loop, on which it runs; made before it starts, destroyed after it has ended.
class Acceptor {
 public:
  Acceptor(std::vector<Listener> listeners, std::span<const std::unique_ptr<EventLoop>> loops,
           const Limits& limits, Counters& counters);
  ~Acceptor() { close(); }

  // Both on the first loop's thread, or while it does not run.
  void start();
  void close();

 private:
  struct Port {
    Listener listener;
    asio::posix::basic_stream_descriptor<Io::executor_type> descriptor;  // the listener's own, lent to Asio
    Timer timer;
  };

  void wait(Port& port);
  void accept_some(Port& port);
  void deal(UniqueFd socket, int family);
  void pause(Port& port);

  const std::span<const std::unique_ptr<EventLoop>> loops_;
  const size_t max_connections_;
  Counters& counters_;
  std::vector<std::unique_ptr<Port>> ports_;
  size_t next_loop_ = 0;
  bool closed_ = false;
};

}  // namespace turnstile::http
