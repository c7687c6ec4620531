// Writing, and the ways in which a connection ends.
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/check.h"
#include "http/connection.h"
#include "http/event_loop.h"

namespace turnstile::http {
namespace {

// How long the peer of a connection that we end may go on sending before the kernel is allowed to send a
// reset, which could destroy the answer on its way.
constexpr Duration kLinger = std::chrono::seconds(2);

}  // namespace

OutBuffer& Connection::out() {
  if (!out_) out_ = loop_.take_buffer();
  return *out_;
}

void Connection::flush() {
  if (write_pending_) return;
  if (has_output()) {
    if (gate_ != 0 && !loop_.handler().may_leave(gate_)) return loop_.hold_back(*this);
    while (has_output()) {
      const ssize_t count = send_some();
      if (count >= 0) {
        sent(size_t(count));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return wait_writable();
      } else if (errno != EINTR) {
        return broken();
      }
    }
    drained();
  } else if (full_) {
    drained();
  }
  if (state_ == State::ending) finish();
}

// All that there was is with the kernel.
void Connection::drained() {
  gate_ = 0;
  answers_ = 0;
  write_deadline_ = kNever;
  loop_.note_unsent(*this, true);
  if (std::exchange(full_, false) && state_ == State::streaming) loop_.handler().on_drained(id_);
}

// One system call for as much as possible.
ssize_t Connection::send_some() {
  if (!stream_ || stream_->empty()) {
    TS_CHECK(out_, "who sends has something to send");
    return channel_.send(out_->view());
  }
  std::array<iovec, 64> parts;
  size_t count = 0;
  if (out_) parts[count++] = {const_cast<char*>(out_->view().data()), out_->size()};
  count += stream_->gather(parts.data() + count, parts.size() - count);
  return channel_.send(std::span(parts.data(), count));
}

void Connection::sent(size_t count) {
  if (out_) {
    const size_t of_buffer = std::min(count, out_->size());
    out_->consume(of_buffer);
    count -= of_buffer;
    if (out_->empty()) loop_.give_buffer(std::move(out_));
  }
  if (count > 0) stream_->consume(count);
}

void Connection::wait_writable() {
  write_pending_ = true;
  // A reader that takes its time must not keep back what others are to see: its receipts are due.
  if (out_) loop_.collect(*out_);
  loop_.note_unsent(*this, true);
  set_write_deadline(full_ ? loop_.limits().full_stream_timeout : loop_.limits().write_timeout);
  // Only now, because a Unix socket tells of room after every read of its peer's.
  loop_.poller().change(channel_.fd(), EPOLLIN | EPOLLRDHUP | EPOLLOUT | EPOLLET, *this);
}

void Connection::set_write_deadline(Duration from_now) {
  write_deadline_ = later(loop_.now(), from_now);
  with_kernel_ = bytes_with_kernel();
  loop_.update_deadline(*this);
}

// The kernel says that it has room again only when a good part of its buffer is free; a thin link may take
// longer for that than a reader may take for nothing.
bool Connection::takes_nothing() const { return bytes_with_kernel() >= with_kernel_; }

int Connection::bytes_with_kernel() const {
  int bytes = 0;
  return ::ioctl(channel_.fd(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

void Connection::close_when_written() {
  notified_ = true;
  if (state_ >= State::ending) return;
  if (handling_ && state_ == State::waiting) return;  // ends with its answer, or when handle() returns
  enter(State::ending);
  if (stream_) stream_->end();
  schedule_unless_handling();
}

void Connection::drain() {
  const bool under_way =
      state_ == State::waiting || has_output() || reader_.phase() != RequestReader::Phase::between;
  if (state_ == State::streaming || !under_way) close_when_written();
}

// All is written and nothing more will be.
void Connection::finish() {
  const bool lingers = !peer_closed_ && (wants_linger_ || !in_.empty());
  if (lingers && channel_.end_output()) {
    enter(State::lingering);
    read_deadline_ = later(loop_.now(), kLinger);
    loop_.update_deadline(*this);
  } else {
    close_now();
  }
  tell_closed(State::ending);
}

void Connection::close_now() {
  if (is_closed()) return;
  enter(State::closed);
  if (stream_) loop_.statistics().streams_open.fetch_sub(1, std::memory_order_relaxed);
  gate_hook_.unlink();
  loop_.note_input(in_.capacity(), 0);
  if (out_) {
    for (Receipt& receipt : out_->receipts) receipt.lost = true;
    loop_.give_buffer(std::move(out_));
  }
  channel_.close();
  loop_.closed(*this);
}

// The peer has gone, or has to go.
void Connection::broken() {
  const State before = state_;
  close_now();
  tell_closed(before);
}

// A reader that is too slow: the kernel drops what it has not sent, and the peer gets a reset.
void Connection::cut_off() {
  if (stream_) loop_.statistics().streams_cut.fetch_add(1, std::memory_order_relaxed);
  channel_.cut();
  broken();
}

bool Connection::replace_output(const Response& instead) {
  const bool answered = state_ == State::reading || state_ == State::ending;
  if (answers_ != 1 || !out_ || stream_ || write_pending_ || !answered) return false;
  gate_hook_.unlink();
  gate_ = 0;
  out_->clear();
  out_->receipts.clear();
  framing_.keep_alive = false;
  loop_.writer().response(*out_, instead, framing_, loop_.now());
  notified_ = true;
  if (state_ == State::reading) enter(State::ending);
  schedule_unless_handling();
  return true;
}

// Tells the handler, once, if it relies on a connection that was in this state.
void Connection::tell_closed(State before) {
  if (notified_ || !(before == State::waiting || stream_ || watched_)) return;
  notified_ = true;
  loop_.handler().on_closed(id_);
}

}  // namespace turnstile::http
