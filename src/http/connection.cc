// Reading, and handing requests to the handler.
#include "http/connection.h"

#include <sys/socket.h>

#include "base/check.h"
#include "http/event_loop.h"

namespace turnstile::http {
namespace {

// So much output is handed to the kernel before further requests of a pipeline are handled.
constexpr size_t kEnoughOutput = 256 * 1024;
constexpr uint32_t kMaxDiscarded = 1024 * 1024;

}  // namespace

// The Responder of one request; lives on the stack while it is handled.
class Connection::OneResponder final : public Responder {
 public:
  explicit OneResponder(Connection& connection) : connection_(connection) {}
  void respond(const Response& response) override { connection_.append(response); }
  void start_stream(std::string_view content_type, std::string_view first, uint64_t release) override {
    connection_.begin_stream(content_type, first, release);
  }

 private:
  Connection& connection_;
};

Connection::Connection(EventLoop& loop, Socket socket, Id id)
    : loop_(loop), socket_(std::move(socket)), id_(id) {}

void Connection::start() {
  read_deadline_ = later(loop_.now(), loop_.limits().header_timeout);
  timed_ = Timed::head;
  loop_.update_deadline(*this);
  start_read();
}

void Connection::proceed() {
  if (closed_) return;
  if (cut_) return cut_off();
  for (;;) {
    const bool more = handle_buffered();
    // What this request made ready for others goes first: who is granted a lock can begin, who freed it is
    // done.
    if (loop_.has_scheduled()) return loop_.schedule(*this);
    flush();
    if (closed_) return;
    if (!more || write_pending_ || is_gated()) break;
  }
  set_read_deadline();
  start_read();
}

bool Connection::may_handle() const {
  return !waiting_ && !stream_ && !closing_ && !notified_ && !lingering_ && !write_pending_;
}

// Handles all complete requests in the buffer. True: there may be more, but the output should be written
// first.
bool Connection::handle_buffered() {
  Incoming incoming;
  while (may_handle()) {
    if (out_ && out_->size() >= kEnoughOutput) return true;
    switch (reader_.next(in_, loop_.limits(), incoming)) {
      case RequestReader::Result::complete:
        handle(incoming);
        break;
      case RequestReader::Result::refused:
        refuse(incoming.status, incoming.problem);
        return false;
      case RequestReader::Result::incomplete:
        if (reader_.take_continue()) out().append("HTTP/1.1 100 Continue\r\n\r\n");
        if (peer_closed_) closing_ = true;
        return false;
    }
  }
  return false;
}

void Connection::handle(Incoming& incoming) {
  incoming.request.connection = id_;
  framing_ = {.http_1_1 = incoming.http_1_1,
              .keep_alive = incoming.keep_alive,
              .head_only = incoming.request.method == Method::head};
  OneResponder responder(*this);
  handling_ = true;
  answered_ = false;
  const Outcome outcome = loop_.handler().handle(incoming.request, responder);
  handling_ = false;
  handled_ = true;
  // A request that "waits" may have been answered before handle() returned, and closing ends the waiting.
  waiting_ = outcome == Outcome::waiting && !answered_ && !closing_;
  TS_CHECK(outcome == Outcome::waiting || answered_, "a handler that says it has answered has done so");
  if (!waiting_) poll_deadline_ = kNever;
  reader_.finish(in_);
}

void Connection::append(const Response& response) {
  TS_CHECK(!answered_, "a request is answered once");
  answered_ = true;
  waiting_ = false;
  poll_deadline_ = kNever;
  framing_.keep_alive = framing_.keep_alive && !response.close && !loop_.is_draining();
  if (!framing_.keep_alive || notified_) closing_ = true;
  loop_.writer().response(out(), response, framing_, loop_.now());
  gate_ = std::max(gate_, response.release);
}

void Connection::begin_stream(std::string_view content_type, std::string_view first, uint64_t release) {
  TS_CHECK(handling_ && !answered_, "a request is answered once");
  answered_ = true;
  loop_.writer().stream_head(out(), content_type, loop_.now());
  gate_ = std::max(gate_, release);
  if (framing_.head_only) {
    closing_ = true;
    return;
  }
  out().append(first);
  stream_ = std::make_unique<StreamQueue>();
  loop_.counters().streams_open.fetch_add(1, std::memory_order_relaxed);
  // The kernel's buffer would otherwise grow to megabytes for a reader that does not read.
  error_code ignored;
  socket_.set_option(asio::socket_base::send_buffer_size(int(loop_.limits().max_stream_backlog)), ignored);
}

void Connection::refuse(unsigned status, std::string_view problem) {
  const std::string body = loop_.handler().error_body(status, problem);
  framing_ = {.http_1_1 = true, .keep_alive = false, .head_only = false};
  answered_ = false;
  append({.status = status,
          .extra_headers = status == 429 ? "Retry-After: 1\r\n" : "",
          .body = body,
          .close = true});
  wants_linger_ = true;
}

bool Connection::answer(const Response& response) {
  if (closed_ || closing_ || answered_ || !(waiting_ || handling_)) return false;
  append(response);
  if (!handling_) loop_.schedule(*this);
  return true;
}

bool Connection::stream(const std::shared_ptr<const std::string>& bytes) {
  if (closed_ || closing_ || cut_ || !stream_) return false;
  stream_->push(bytes);
  cut_ = stream_->bytes() > loop_.limits().max_stream_backlog;
  loop_.schedule(*this);
  return !cut_;
}

void Connection::set_timer(Time deadline) {
  if (!waiting_ && !handling_) return;
  poll_deadline_ = deadline;
  loop_.update_deadline(*this);
}

void Connection::start_read() {
  if (read_pending_ || peer_closed_ || is_gated()) return;
  if (stream_ || lingering_) {
    in_.clear();
    in_.prepare(0);
  } else if (may_handle()) {
    reader_.compact(in_);
    in_.prepare(reader_.wanted(loop_.limits()));
  } else {
    in_.prepare(0);  // nothing will be taken out for a while: only notice what happens to the connection
    if (in_.room() == 0) return;
  }
  TS_CHECK(in_.room() > 0, "a request within its limits fits the buffer");
  read_pending_ = true;
  socket_.async_read_some(asio::buffer(in_.tail(), in_.room()),
                          [this](const error_code& failure, size_t count) { on_read(failure, count); });
}

void Connection::on_read(const error_code& failure, size_t count) {
  EventLoop::Turn turn(loop_);
  read_pending_ = false;
  if (closed_) return loop_.bury(*this);
  if (failure == asio::error::eof) return on_end_of_input();
  if (failure) return broken();
  if (stream_ || lingering_) return discard(count);
  in_.commit(count);
  proceed();
}

// The peer sends no more; what it has sent is still answered, but whoever relies on the connection is told.
void Connection::on_end_of_input() {
  peer_closed_ = true;
  if (lingering_) return close_now();
  if (stream_) return broken();
  proceed();
  tell_closed();
  if (notified_ && !waiting_) close_when_written();
}

void Connection::discard(size_t count) {
  discarded_ += uint32_t(count);
  if (discarded_ > kMaxDiscarded) return broken();
  start_read();
}

void Connection::set_read_deadline() {
  if (lingering_) return;
  if (waiting_ || stream_ || write_pending_ || is_gated()) {
    timed_ = Timed::nothing;
    read_deadline_ = kNever;
  } else {
    const Limits& limits = loop_.limits();
    const auto [timed, timeout] =
        reader_.phase() == RequestReader::Phase::body   ? std::pair(Timed::body, limits.body_timeout)
        : reader_.phase() == RequestReader::Phase::head ? std::pair(Timed::head, limits.header_timeout)
                                                        : std::pair(Timed::between, idle_timeout());
    if (timed != timed_ || handled_) read_deadline_ = later(loop_.now(), timeout);
    timed_ = timed;
  }
  handled_ = false;
  loop_.update_deadline(*this);
}

// Who watches a connection lives by it, so it may be idle for as long as it likes.
Duration Connection::idle_timeout() const { return watched_ ? Duration::max() : loop_.limits().idle_timeout; }

void Connection::on_deadline(Time now) {
  if (poll_deadline_ <= now) {
    poll_deadline_ = kNever;
    if (waiting_) loop_.handler().on_timer(id_);
  }
  if (write_deadline_ <= now) {
    loop_.counters().timed_out.fetch_add(1, std::memory_order_relaxed);
    return cut_off();
  }
  if (read_deadline_ > now) return loop_.update_deadline(*this);
  read_deadline_ = kNever;
  if (lingering_) return close_now();
  if (timed_ == Timed::between) return broken();
  loop_.counters().timed_out.fetch_add(1, std::memory_order_relaxed);
  refuse(408, timed_ == Timed::head ? "The request head took too long." : "The request body took too long.");
  proceed();
}

}  // namespace turnstile::http
