// One connection: bytes in, requests to the handler, answers out, and how it ends.
//
// connection.cc reads and handles, connection_write.cc writes and closes.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>

#include "base/deadline_heap.h"
#include "http/buffers.h"
#include "http/channel.h"
#include "http/peer.h"
#include "http/poller.h"
#include "http/request_reader.h"
#include "http/response_writer.h"
#include "http/stream_queue.h"

namespace turnstile::http {

class EventLoop;

// A connection that has been accepted and belongs to no loop yet.
struct Arrival {
  UniqueFd socket;  // non-blocking
  std::unique_ptr<Peer> peer;
  const TlsContext* tls = nullptr;  // none: it is plain
  bool refused = false;             // only to be told that the server is full
};

// Not its job: who may call it when. The loop works in turns and calls proceed() at the end of each, so that
// a handler that answers one connection while it handles another is never entered twice, and no connection is
// destroyed under its own feet. Time: now() of the loop's turn. Three deadlines (read, write, long poll); the
// loop's heap holds one entry that is never later than the earliest of them. Threads: the loop's only.
// Invariant: answers leave in the order of their requests; nothing leaves before the handler lets gate_ pass.
// Where it is between its first request and its end is its State.
// The kernel tells edges: readable_ stays true until a read has found the end of what there is, and
// write_pending_ until the kernel has room again.
class Connection final : public Source {
 public:
  using Id = ConnectionId;

  Connection(EventLoop& loop, Arrival arrival, Id id);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Id id() const { return id_; }
  bool is_closed() const { return state_ == State::closed; }
  uint64_t gate() const { return gate_; }

  // False: the kernel cannot watch one more socket.
  bool start();
  void on_ready(uint32_t events) override;
  // Goes on with the TLS handshake; the loop says when.
  void greet();
  // Answers with an error of the HTTP layer's own and closes.
  void refuse(unsigned status, std::string_view problem);
  // ... because the server is full.
  void refuse_as_too_many();

  // What Loop says about the methods of the same name.
  bool answer(const Response& response);
  Streamed stream(const std::shared_ptr<const std::string>& bytes);
  void tell_when_drained();
  void set_timer(Time deadline);
  void watch() { watched_ = true; }
  void close_when_written();

  // Handles what has come in, writes what may be written, reads on: whatever is possible now.
  void proceed();
  void on_deadline(Time now);
  // The server shuts down: closes unless an answer is under way.
  void drain();
  void close_now();
  void cut_off();
  // Its one answer, of which nothing has left, becomes this one, and the last. False: it cannot.
  bool replace_output(const Response& instead);
  size_t unsent() const { return (out_ ? out_->size() : 0) + (stream_ ? stream_->bytes() : 0); }

  Time deadline() const { return std::min({read_deadline_, write_deadline_, poll_deadline_}); }
  Time heap_deadline_ = kNever;   // the heap's entry; the loop's
  HeapPlace place_ = kNotInHeap;  // the heap's
  bool is_refused_ = false;       // the loop's: beyond max_connections, and only here to be told
  bool scheduled_ = false;        // the loop's: proceed() will be called at the end of this turn
  using Hook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
  Hook gate_hook_;
  Hook greeting_hook_;  // in the loop's list of those whose handshake can go on
  Hook slow_hook_;      // in the loop's list of slow readers while the kernel takes no more
  size_t unsent_ = 0;   // the loop's: what it counts of this one

 private:
  class OneResponder;
  // In the order of a life; enter() has the steps that are allowed.
  enum class State : uint8_t {
    greeting,   // TLS is being agreed on
    reading,    // the next request may come, or is here
    waiting,    // the handler has a request and owes the answer: inside handle(), or later
    streaming,  // carries what stream() gets, until it ends
    ending,     // closes when all is written
    lingering,  // all is written: the peer may read it before the kernel may send a reset
    closed,     // only kept until no event can name it
  };
  enum class Timed : uint8_t { nothing, between, head, body };

  void enter(State next);
  bool discards_input() const { return state_ == State::streaming || state_ == State::lingering; }
  void schedule_unless_handling();

  void greeted();
  void fail_greeting(const char* problem);
  bool read();
  void read_later();
  bool make_room();
  // False: the loop has taken as much of requests that are not whole as it may.
  bool prepare_input(size_t limit);
  bool discard(size_t count);
  bool ends_behind_what_waits() const;
  void on_end_of_input();
  bool may_handle() const;
  bool handle_buffered();
  void handle(Incoming& incoming);
  void append(const Response& response);
  void note_leaving(const Response& response);
  void begin_stream(const Response& begin);
  void set_read_deadline();
  Duration idle_timeout() const;

  OutBuffer& out();
  bool has_output() const { return out_ || (stream_ && !stream_->empty()); }
  bool is_gated() const { return gate_hook_.is_linked(); }
  void flush();
  ssize_t send_some();
  void sent(size_t count);
  void wait_writable();
  void set_write_deadline(Duration from_now);
  bool takes_nothing() const;
  int bytes_with_kernel() const;
  void drained();
  void finish();
  void broken();
  void tell_closed(State before);

  EventLoop& loop_;
  Channel channel_;
  const TlsContext* const tls_;
  const std::unique_ptr<Peer> peer_;
  const Id id_;
  InBuffer in_;
  RequestReader reader_;
  std::unique_ptr<OutBuffer> out_;       // only while there is something in it
  std::unique_ptr<StreamQueue> stream_;  // only when this is a stream
  uint64_t gate_ = 0;                    // the highest Response::gate of what is in out_
  Time read_deadline_ = kNever;          // head, body, idle or lingering, see timed_
  Time write_deadline_ = kNever;
  Time poll_deadline_ = kNever;  // set_timer(), while waiting
  int with_kernel_ = 0;          // bytes not acknowledged when write_deadline_ was set
  uint32_t answers_ = 0;         // in out_
  uint32_t discarded_ = 0;       // input that nobody wants, on a stream or while lingering
  Framing framing_;              // of the request that is being handled or waits
  State state_;                  // changed by enter() only
  Timed timed_ = Timed::head;    // what read_deadline_ is about
  // The socket:
  bool readable_ = false;       // a read may find something
  bool hung_up_ = false;        // ... and behind it, the end
  bool peer_closed_ = false;    // ... which has been read
  bool write_pending_ = false;  // the kernel's buffer is full
  // The handler:
  bool handling_ = false;  // inside Handler::handle(), whose caller does what is to be done after it
  bool asked_ = false;     // the first request has come
  bool handled_ = false;   // a request was handled since read_deadline_ was set
  bool watched_ = false;   // on_closed() is wanted even if no request waits
  bool notified_ = false;  // on_closed() was called, or must not be
  bool full_ = false;      // a stream that has refused bytes; on_drained() follows

  bool wants_linger_ = false;  // lingers whatever there is to read
};

}  // namespace turnstile::http
