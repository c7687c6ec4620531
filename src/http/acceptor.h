// Takes connections from the listeners and deals them out to the loops.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "http/descriptors.h"
#include "http/event_loop.h"
#include "http/listener.h"

namespace turnstile::http {

// One for the whole server, so that connections are dealt evenly, one by one, whoever is busy.
//
// Threads: that of the first loop, on which it runs; made before it starts, destroyed after it has ended.
class Acceptor {
 public:
  // `room`: how many connections may be open at once; those beyond are told so, as many as may be, and the
  // others wait in the kernel's queue.
  Acceptor(std::vector<Listener> listeners, std::span<const std::unique_ptr<EventLoop>> loops, Room room,
           Statistics& statistics, const TlsContext* tls);
  ~Acceptor() { close(); }

  // Both on the first loop's thread, or while it does not run.
  void start();
  void close();

 private:
  // One listener, and the alarm that ends its pause.
  class Port final : public Source {
   public:
    Port(Acceptor& acceptor, Listener listener);
    void start();
    void on_ready(uint32_t events) override;
    void close();

   private:
    // Out of file descriptors or room: the listener is left alone until the alarm rings.
    class Alarm final : public Source {
     public:
      explicit Alarm(Port& port);
      int fd() const { return timer_.get(); }
      void set(std::chrono::milliseconds delay);
      void on_ready(uint32_t events) override;

     private:
      Port& port_;
      UniqueFd timer_;
    };

    void watch(bool yes);
    void pause();

    Acceptor& acceptor_;
    Listener listener_;
    Alarm alarm_;
    bool closed_ = false;
  };

  bool is_full() const;
  bool may_greet_to_refuse();
  void deal(UniqueFd socket, const sockaddr_storage& from, bool tls);

  const std::span<const std::unique_ptr<EventLoop>> loops_;
  const Room room_;
  Statistics& statistics_;
  const TlsContext* const tls_;  // of the listeners that speak it
  std::vector<std::unique_ptr<Port>> ports_;
  size_t next_loop_ = 0;
  Time greets_since_{};  // the second in which greets_ are counted
  unsigned greets_ = 0;  // of those that are only told no
};

}  // namespace turnstile::http
