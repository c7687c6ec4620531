// Reading, and handing requests to the handler.
#include "http/connection.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/check.h"
#include "http/event_loop.h"

namespace turnstile::http {
namespace {

// So much output is handed to the kernel before further requests of a pipeline are handled.
constexpr size_t kEnoughOutput = 256 * 1024;
constexpr uint32_t kMaxDiscarded = 1024 * 1024;
// So often a connection may read in one turn before the others have theirs.
constexpr int kReadsATurn = 16;
constexpr uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;

constexpr unsigned any_of(auto... states) { return (0u | ... | (1u << unsigned(states))); }

}  // namespace

// A step that is not listed is a bug of ours: requests are answered once and in order, and an end is final.
void Connection::enter(State next) {
  using enum State;
  constexpr auto allowed_after = [](State state) {
    switch (state) {
      case greeting:
        return any_of(reading, ending, closed);
      case reading:
        return any_of(waiting, ending, closed);
      case waiting:
        return any_of(reading, streaming, ending, closed);
      case streaming:
        return any_of(ending, closed);
      case ending:
        return any_of(lingering, closed);
      case lingering:
        return any_of(closed);
      case closed:
        break;
    }
    return 0u;
  };
  TS_CHECK(allowed_after(state_) & any_of(next), "a connection takes only the steps that its state allows");
  if (state_ == waiting) poll_deadline_ = kNever;
  state_ = next;
}

// The Responder of one request; lives on the stack while it is handled.
class Connection::OneResponder final : public Responder {
 public:
  explicit OneResponder(Connection& connection) : connection_(connection) {}
  void respond(const Response& response) override {
    check_unanswered();
    connection_.append(response);
  }
  void start_stream(const Response& begin) override {
    check_unanswered();
    connection_.begin_stream(begin);
  }

 private:
  void check_unanswered() const {
    TS_CHECK(connection_.state_ == State::waiting, "a request is answered once");
  }

  Connection& connection_;
};

Connection::Connection(EventLoop& loop, Arrival arrival, Id id)
    : is_refused_(arrival.refused),
      loop_(loop),
      channel_(std::move(arrival.socket)),
      tls_(arrival.tls),
      peer_(std::move(arrival.peer)),
      id_(id),
      state_(tls_ ? State::greeting : State::reading) {}

bool Connection::start() {
  if (!loop_.poller().add(channel_.fd(), kReadEvents, *this)) return false;
  const Limits& limits = loop_.limits();
  read_deadline_ =
      later(loop_.now(), state_ == State::greeting ? limits.handshake_timeout : limits.header_timeout);
  loop_.update_deadline(*this);
  return true;
}

void Connection::on_ready(uint32_t events) {
  if (is_closed()) return;  // by what was reported together with this
  if (events & ~uint32_t(EPOLLOUT)) readable_ = true;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) write_pending_ = false;
  if (readable_) channel_.note_readable(hung_up_);
  if (state_ == State::greeting) return loop_.greet_later(*this);
  proceed();
}

void Connection::proceed() {
  if (is_closed() || state_ == State::greeting) return;
  for (int reads = 0;;) {
    const size_t scheduled = loop_.scheduled();
    const bool more = handle_buffered();
    // What this request made ready for others goes first: who is granted a lock can begin, who freed it is
    // done.
    if (loop_.scheduled() > scheduled) {
      loop_.schedule(*this);
      break;
    }
    flush();
    if (is_closed()) return;
    if (write_pending_ || is_gated()) break;
    if (more) continue;
    if (!readable_ || peer_closed_) break;
    if (++reads > kReadsATurn) {
      read_later();
      break;
    }
    if (!read()) break;
  }
  if (is_closed()) return;
  if (peer_closed_ || ends_behind_what_waits()) on_end_of_input();
  set_read_deadline();
}

// The peer has gone, and its end is behind more requests than the buffer takes while one waits.
bool Connection::ends_behind_what_waits() const {
  return state_ == State::waiting && hung_up_ && in_.room() == 0;
}

// After others. What TLS has taken from the kernel already is not reported again by it.
void Connection::read_later() {
  if (channel_.is_tls()) return loop_.schedule(*this);
  loop_.poller().change(channel_.fd(), kReadEvents, *this);
}

bool Connection::may_handle() const { return state_ == State::reading && !write_pending_; }

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
        if (peer_closed_) enter(State::ending);
        return false;
    }
  }
  return false;
}

void Connection::handle(Incoming& incoming) {
  incoming.request.connection = id_;
  incoming.request.peer = peer_.get();
  framing_ = {.http_1_1 = incoming.http_1_1,
              .keep_alive = incoming.keep_alive,
              .head_only = incoming.request.method == Method::head};
  OneResponder responder(*this);
  enter(State::waiting);
  handling_ = asked_ = true;
  const Handled handled = loop_.handler().handle(incoming.request, responder);
  handling_ = false;
  handled_ = true;
  // A request that "waits" may have been answered before handle() returned.
  if (state_ == State::waiting) {
    TS_CHECK(handled == Handled::waiting, "a handler that says it has answered has done so");
    if (notified_) enter(State::ending);  // by close_when_written(), which ends the waiting
  }
  reader_.finish(in_);
  // A large one is not kept until the next request, which may never come.
  if (!is_closed() && in_.empty() && in_.capacity() > InBuffer::kStart) prepare_input(0);
}

void Connection::append(const Response& response) {
  framing_.keep_alive = framing_.keep_alive && !response.close && !loop_.is_draining();
  enter(framing_.keep_alive && !notified_ ? State::reading : State::ending);
  loop_.writer().response(out(), response, framing_, loop_.now());
  ++answers_;
  note_leaving(response);
}

// What has been added to the buffer leaves behind this gate, and with these receipts.
void Connection::note_leaving(const Response& response) {
  if (response.gate > gate_) {
    gate_ = response.gate;
    if (is_gated()) loop_.hold_back(*this);  // further back
  }
  out().receipts.insert(out().receipts.end(), response.receipts.begin(), response.receipts.end());
}

void Connection::begin_stream(const Response& begin) {
  loop_.writer().stream_head(out(), begin.content_type, framing_, begin.body, loop_.now());
  note_leaving(begin);
  if (framing_.head_only || notified_) return enter(State::ending);
  enter(State::streaming);
  stream_ = std::make_unique<StreamQueue>(framing_.http_1_1);
  loop_.statistics().streams_open.fetch_add(1, std::memory_order_relaxed);
  // The kernel's buffer would otherwise grow to megabytes for a reader that does not read.
  const int size = int(loop_.limits().max_stream_backlog);
  ::setsockopt(channel_.fd(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

void Connection::refuse(unsigned status, std::string_view problem) {
  const std::string body = loop_.handler().error_body(status, problem);
  framing_ = {.http_1_1 = true, .keep_alive = false, .head_only = false};
  append({.status = status,
          .extra_headers = status == 429 ? "Retry-After: 1\r\n" : "",
          .body = body,
          .receipts = {},
          .close = true});
  wants_linger_ = true;
}

void Connection::refuse_as_too_many() {
  refuse(429, "The server has too many connections; try again later.");
}

bool Connection::answer(const Response& response) {
  if (state_ != State::waiting) return false;
  append(response);
  schedule_unless_handling();
  return true;
}

// An empty stream takes whatever comes, so that what is larger than its backlog may be gets through, too.
Streamed Connection::stream(const std::shared_ptr<const std::string>& bytes) {
  if (state_ != State::streaming) return Streamed::gone;
  const size_t most = loop_.limits().max_stream_backlog;
  if (full_ || (!stream_->empty() && stream_->bytes() + bytes->size() > most)) {
    if (!full_ && write_pending_) set_write_deadline(loop_.limits().full_stream_timeout);
    full_ = true;
    return Streamed::full;
  }
  stream_->push(bytes);
  if (write_pending_) loop_.note_unsent(*this, false);
  loop_.schedule(*this);
  return Streamed::queued;
}

void Connection::tell_when_drained() {
  if (state_ != State::streaming) return;
  full_ = true;
  schedule_unless_handling();
}

// Behind handle(), proceed() goes on by itself.
void Connection::schedule_unless_handling() {
  if (!handling_) loop_.schedule(*this);
}

void Connection::set_timer(Time deadline) {
  if (state_ != State::waiting) return;
  poll_deadline_ = deadline;
  loop_.update_deadline(*this);
}

// Takes what the kernel has, once. True: there may be something new to handle.
bool Connection::read() {
  if (!make_room()) return false;
  const size_t room = in_.room();
  const ssize_t count = channel_.receive(in_.tail(), room);
  if (count < 0) {
    if (errno == EINTR) return true;
    readable_ = false;
    if (errno != EAGAIN && errno != EWOULDBLOCK) broken();
    return false;
  }
  // That was all, unless the end is behind it.
  if (channel_.is_drained(size_t(count), room) && !hung_up_) readable_ = false;
  if (count == 0) {
    peer_closed_ = true;
    if (state_ == State::lingering) close_now();
    if (state_ == State::streaming) broken();
    return !is_closed();
  }
  if (discards_input()) return discard(size_t(count));
  in_.commit(size_t(count));
  return true;
}

// False: nothing will be taken out of the buffer for a while, and it is full.
bool Connection::make_room() {
  if (discards_input()) {
    in_.clear();
    prepare_input(0);
  } else if (may_handle()) {
    reader_.compact(in_);
    if (!prepare_input(reader_.wanted(loop_.limits()))) {
      refuse(429, "The server has too many unfinished requests; try again later.");
      loop_.schedule(*this);
      return false;
    }
    TS_CHECK(in_.room() > 0, "a request within its limits fits the buffer");
  } else {
    prepare_input(0);  // only to notice what happens to the connection
  }
  return in_.room() > 0;
}

bool Connection::prepare_input(size_t limit) {
  const size_t before = in_.capacity();
  if (!loop_.may_take_input(before, in_.next_capacity(limit))) return false;
  in_.prepare(limit);
  loop_.note_input(before, in_.capacity());
  return true;
}

bool Connection::discard(size_t count) {
  discarded_ += uint32_t(count);
  if (discarded_ <= kMaxDiscarded) return true;
  broken();
  return false;
}

// The peer sends no more; what it has sent is still answered, but whoever relies on the connection is told.
void Connection::on_end_of_input() {
  tell_closed(state_);
  if (notified_ && state_ != State::waiting) close_when_written();
}

void Connection::set_read_deadline() {
  if (state_ == State::lingering) return;
  if (state_ != State::reading || write_pending_ || is_gated()) {
    timed_ = Timed::nothing;
    read_deadline_ = kNever;
  } else {
    const Limits& limits = loop_.limits();
    const auto [timed, timeout] = reader_.phase() == RequestReader::Phase::body
                                      ? std::pair(Timed::body, limits.body_timeout)
                                  : reader_.phase() == RequestReader::Phase::head || !asked_
                                      ? std::pair(Timed::head, limits.header_timeout)
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
    loop_.handler().on_timer(id_);
  }
  if (write_deadline_ <= now && !takes_nothing())
    set_write_deadline(full_ ? loop_.limits().full_stream_timeout : loop_.limits().write_timeout);
  if (write_deadline_ <= now) {
    loop_.statistics().timed_out.fetch_add(1, std::memory_order_relaxed);
    return cut_off();
  }
  if (read_deadline_ > now) return loop_.update_deadline(*this);
  read_deadline_ = kNever;
  if (state_ == State::lingering) return close_now();
  if (state_ == State::greeting) {
    loop_.statistics().timed_out.fetch_add(1, std::memory_order_relaxed);
    return close_now();
  }
  // Closed since proceed() was called last: that is due, and needs no deadline.
  if (state_ != State::reading) return loop_.update_deadline(*this);
  if (timed_ == Timed::between) return broken();
  loop_.statistics().timed_out.fetch_add(1, std::memory_order_relaxed);
  refuse(408, timed_ == Timed::head ? "The request head took too long: send it again."
                                    : "The request body took too long: send it again.");
  proceed();
}

}  // namespace turnstile::http
