// One client's connection: HTTP/2 as nghttp2 speaks it, and the calls on it.
//
// nghttp2 does the protocol (frames, header compression, windows, settings, pings); here its callbacks are
// tied to Streams on one side and to the socket on the other.
#pragma once

#include <nghttp2/nghttp2.h>

#include <functional>
#include <memory>
#include <unordered_map>

#include "http/poller.h"
#include "rpc/call_threads.h"
#include "rpc/stream.h"

namespace turnstile::rpc {

// What all connections of a server share.
struct Surroundings {
  const Methods& methods;
  CallThreads& threads;
  http::Poller& poller;
  size_t max_message;
  uint32_t max_calls;  // at once, of one connection
  // Any thread: the loop should call resume() of this connection for this stream.
  std::function<void(uint64_t connection, int32_t stream)> something_to_do;
};

// Threads: the loop's only.
class Connection final : public http::Source {
 public:
  Connection(uint64_t number, UniqueFd socket, const Surroundings& surroundings);
  ~Connection();  // its calls are cancelled

  // False: it cannot be served, and goes.
  bool start();
  void on_ready(uint32_t events) override;
  // A method's thread has done something.
  void resume(int32_t stream);
  // Takes no new calls.
  void say_goodbye();
  void cancel_all();

  bool broken() const { return broken_; }
  // Calls, or answers of calls that the socket has not taken yet.
  bool is_busy() const { return !streams_.empty() || !outgoing_.empty(); }

 private:
  struct Callbacks;  // nghttp2's, in C
  struct Free {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };
  // A request's headers, as far as they matter.
  struct Head {
    std::string method, path, content_type;
    size_t size = 0;  // of them all
  };

  void receive();
  void send();
  void watch_for_room(bool wanted);

  void begin_call(int32_t id);
  void request_ended(Stream& stream);
  void run_on_thread(Stream& stream);
  void answer(Stream& stream);
  void submit_trailers(Stream& stream);
  void end_with(int32_t id, const Status& status);
  Stream* find(int32_t id);

  const uint64_t number_;
  UniqueFd socket_;
  const Surroundings& surroundings_;
  std::unique_ptr<nghttp2_session, Free> session_;
  std::unordered_map<int32_t, std::shared_ptr<Stream>> streams_;
  std::unordered_map<int32_t, Head> heads_;  // of requests whose headers are still coming
  Outgoing outgoing_;
  bool waits_for_room_ = false, broken_ = false;
};

}  // namespace turnstile::rpc
