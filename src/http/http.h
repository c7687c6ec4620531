// The interface between the HTTP loops and whoever handles requests. This folder knows nothing of locks.
//
// One Loop is one thread with its own connections; each has a Handler of its own, which is only ever called
// on that thread, so that a handler's state needs no lock. What other threads have for a loop they give to
// post().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"

namespace turnstile::http {

struct Peer;  // http/peer.h

enum class Method : uint8_t { get, post, head, options, other };

// Names a connection for as long as it is open; never used twice in a process. The upper 8 bits are the
// loop's index.
enum class ConnectionId : uint64_t { none = 0 };
constexpr unsigned loop_of(ConnectionId id) { return unsigned(uint64_t(id) >> 56); }

// A complete request. All views are valid only during Handler::handle().
struct Request {
  Method method = Method::other;
  std::string_view method_text;
  std::string_view path;           // up to '?', not decoded; of OPTIONS it may be "*"
  std::string_view query;          // after '?', not decoded
  std::string_view body;           // at least kBodyPadding readable bytes lie behind it
  std::string_view last_event_id;  // the header of that name
  // ... and of these. Without data: not there; there may be only one of each, but of the last two, where the
  // last counts.
  std::string_view host, origin, authorization, sec_fetch_site, accept, if_none_match;
  const Peer* peer = nullptr;  // who asks; never null where a connection brings the request
  ConnectionId connection = ConnectionId::none;
};
inline constexpr size_t kBodyPadding = 64;

// Comes back through Handler::on_written() when the answer it went with is with the kernel. Only the handler
// knows what the number and the time mean.
struct Receipt {
  ConnectionId connection = ConnectionId::none;
  uint64_t number = 0;
  Time time{};
  bool lost = false;  // set on the way: the connection ended before any of the answer was with the kernel
};

struct Response {
  unsigned status = 200;
  std::string_view content_type = "application/json";
  std::string_view extra_headers;  // whole lines, each with its CRLF
  std::string_view body;
  uint64_t gate = 0;  // not written before Handler::may_leave() says so; 0 = at once
  std::span<const Receipt> receipts;
  bool close = false;  // close the connection behind it
};

// What a handler decides about a request.
enum class Handled : uint8_t {
  answered,  // Responder::respond() was called
  waiting,   // Loop::answer() will be called later; further requests of this connection wait until then
  stream,  // Responder::start_stream() was called: the connection now only carries what Loop::stream() sends
};

class Responder {
 public:
  virtual ~Responder() = default;
  virtual void respond(const Response& response) = 0;
  // Sends the head of an endless answer and the body, which is what it begins with. Its status and `close`
  // are not looked at.
  virtual void start_stream(const Response& begin) = 0;
};

class Handler {
 public:
  virtual ~Handler() = default;
  virtual Handled handle(const Request& request, Responder& responder) = 0;
  // The other side has closed or half-closed, or the connection broke: called once for each connection that
  // has a waiting request, is a stream, or was marked with Loop::watch(). No call of the connection's
  // follows.
  virtual void on_closed(ConnectionId connection) = 0;
  // The time given to Loop::set_timer() for a waiting request is over; the request still waits for
  // Loop::answer().
  virtual void on_timer(ConnectionId connection) = 0;
  // Whether what waits behind this gate may be written. False: Loop::open_gate() will be called when it may.
  virtual bool may_leave(uint64_t gate) = 0;
  // The answers of these receipts are with the kernel, as far as it takes them; or their connections have
  // ended, of which on_closed() was told before. Once a turn.
  virtual void on_written(std::span<const Receipt> receipts) = 0;
  // A stream that had no room has sent all it had.
  virtual void on_drained(ConnectionId connection) = 0;
  // An error answer of the HTTP layer's own (400 framing, 408, 413, 429, 431): the body for it, as JSON.
  virtual std::string error_body(unsigned status, std::string_view message) = 0;
};

struct Limits {
  size_t max_head = 16 * 1024;
  size_t max_body = 64 * 1024;
  size_t max_batch_body = 1024 * 1024;  // for the one path that takes more than the others:
  std::string large_body_path = "/batch";
  size_t max_connections = 60'000;         // all loops together
  size_t max_stream_backlog = 256 * 1024;  // bytes that wait to be written to one stream; more: it is full
  size_t max_loop_input =
      64 * 1024 * 1024;  // of requests that have not come whole, all of a loop: more are refused
  size_t max_loop_backlog = 256 * 1024 * 1024;  // ... to all slow readers of a loop; more: the slowest go
  Duration header_timeout = std::chrono::seconds(10);
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration body_timeout = std::chrono::seconds(10);
  Duration idle_timeout = std::chrono::seconds(75);
  Duration write_timeout = std::chrono::seconds(30);  // a reader that takes nothing for so long is cut off;
  Duration full_stream_timeout = std::chrono::seconds(5);  // ... so long, when its stream is full
};

enum class Streamed : uint8_t {
  queued,
  full,  // nothing was taken: so much waits already. Handler::on_drained() follows, or the reader is cut off
  gone,
};

// One thread's connections. Every method but post() and index() is for that thread only.
class Loop {
 public:
  virtual ~Loop() = default;
  virtual unsigned index() const = 0;

  // Runs `task` on the loop's thread, soon. From any thread.
  virtual void post(std::function<void()> task) = 0;

  // Answers a request that was handled as `waiting`. False: the connection has gone meanwhile.
  virtual bool answer(ConnectionId connection, const Response& response) = 0;
  // Calls Handler::on_timer() once after `delay`, unless the request is answered before.
  virtual void set_timer(ConnectionId connection, Duration delay) = 0;
  // Ask for on_closed() although no request waits (the connection is a bond).
  virtual void watch(ConnectionId connection) = 0;
  // Sends bytes on a stream; shared, because many streams send the same.
  virtual Streamed stream(ConnectionId connection, const std::shared_ptr<const std::string>& bytes) = 0;
  // Asks for Handler::on_drained(), also where the stream was never full. Until then it takes nothing more.
  virtual void tell_when_drained(ConnectionId connection) = 0;
  virtual void close(ConnectionId connection) = 0;

  // What waits behind a gate up to this one is to ask Handler::may_leave() again.
  virtual void open_gate(uint64_t gate) = 0;
  // Cuts off every connection that has something to send: it never leaves. Not from within Handler::handle().
  virtual void drop_output() = 0;
  // The same, but whose one answer has not begun to leave is told this instead, and then cut off.
  virtual void replace_output(const Response& instead) {
    (void)instead;
    drop_output();
  }
  virtual size_t connections() const = 0;
};

using HandlerFactory = std::function<std::unique_ptr<Handler>(Loop&)>;

}  // namespace turnstile::http
