#include "http/event_loop.h"

#include <pthread.h>

#include "base/check.h"
#include "base/log.h"

namespace turnstile::http {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(10);
constexpr std::chrono::microseconds kSpin{250};  // docs/decisions/0012-looking-before-sleeping.md
constexpr unsigned kSlotBits = 20;               // of an id; above them a number that is never used twice
constexpr uint64_t kSlotMask = (uint64_t(1) << kSlotBits) - 1;
constexpr size_t kSpareBuffers = 256;
constexpr size_t kLargestSpare = 64 * 1024;

uint32_t slot_of(ConnectionId id) { return uint32_t(uint64_t(id) & kSlotMask); }

}  // namespace

// The hint turns the reactor's locks off, as only this loop's thread uses its sockets; post() stays safe.
EventLoop::EventLoop(unsigned index, const Limits& limits, Counters& counters)
    : index_(index),
      limits_(limits),
      counters_(counters),
      io_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      work_(io_.get_executor()),
      timer_(io_) {
  TS_CHECK(index < 256, "a loop's index fits into 8 bits of an id");
}

EventLoop::~EventLoop() { join_until({}); }

void EventLoop::start() {
  std::packaged_task<void()> task([this] { run(); });
  ended_ = task.get_future();
  thread_ = std::thread(std::move(task));
}

void EventLoop::join_until(std::chrono::steady_clock::time_point deadline) {
  if (!thread_.joinable()) return;
  if (ended_.wait_until(deadline) != std::future_status::ready) io_.stop();
  thread_.join();
  // Connections that are left are closed, without a word to the handler: the world ends, not their peers.
  for_all([](Connection& connection) { connection.close_now(); });
}

void EventLoop::run() {
  pthread_setname_np(pthread_self(), ("http-" + std::to_string(index_)).c_str());
  try {
    while (!io_.stopped()) {
      if (io_.poll() == 0) wait_for_work();
    }
  } catch (const std::exception& failure) {
    log_error("an HTTP loop ended by an exception", {{"what", failure.what()}});
    TS_CHECK(false, "nothing throws out of an HTTP loop");
  }
}

// Looks for work for a moment before it sleeps, if the last sleep was short: to be woken from sleep takes
// longer than most requests, and a lock that is handed around pays for it at every step (decision 0012).
void EventLoop::wait_for_work() {
  using Clock = std::chrono::steady_clock;
  const auto idle_since = Clock::now();
  const bool hopeful = spins_ && last_idle_ < kSpin;
  bool found = false;
  while (hopeful && !found && !io_.stopped() && Clock::now() - idle_since < kSpin) found = io_.poll() > 0;
  if (!found) io_.run_one();
  last_idle_ = Clock::now() - idle_since;
}

void EventLoop::adopt(UniqueFd socket, int family, bool refused) {
  asio::post(io_, [this, socket = std::move(socket), family, refused]() mutable {
    Turn turn(*this);
    Socket adopted(io_);
    error_code failure;
    adopted.assign(asio::generic::stream_protocol(family, 0), socket.get(), failure);
    if (failure || draining_ || (free_slots_.empty() && slots_.size() > kSlotMask)) {
      if (!failure) adopted.release(failure);
      (refused ? counters_.refused_open : counters_.connections_open).fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    socket.release();
    if (free_slots_.empty()) {
      free_slots_.push_back(uint32_t(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    const uint64_t id = uint64_t(index_) << 56 | ++last_number_ << kSlotBits | slot;
    slots_[slot] = std::make_unique<Connection>(*this, std::move(adopted), ConnectionId(id));
    ++open_;
    if (refused) {
      slots_[slot]->is_refused_ = true;
      slots_[slot]->refuse(429, "The server has as many connections as it may have; try again later.");
      slots_[slot]->proceed();
    } else {
      slots_[slot]->start();
    }
  });
}

void EventLoop::post(std::function<void()> task) {
  bool first = false;
  {
    Locked lock(mutex_);
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (first) asio::post(io_, [this] { run_tasks(); });
}

// All tasks that are there, in one turn: the answers to a batch are written together.
void EventLoop::run_tasks() {
  {
    Locked lock(mutex_);
    running_tasks_.swap(tasks_);
  }
  Turn turn(*this);
  for (const auto& task : running_tasks_) task();
  running_tasks_.clear();
}

void EventLoop::end_turn() {
  while (!scheduled_.empty() || written_) {
    proceeding_.swap(scheduled_);
    for (Connection* connection : proceeding_) {
      connection->scheduled_ = false;
      connection->proceed();
    }
    proceeding_.clear();
    // Only when all is written; on_written() may schedule more.
    if (scheduled_.empty() && std::exchange(written_, false)) handler_->on_written();
  }
  for (const uint32_t slot : buried_) {
    slots_[slot].reset();
    free_slots_.push_back(slot);
  }
  buried_.clear();
  if (draining_ && open_ == 0) io_.stop();
}

Connection* EventLoop::find(ConnectionId id) {
  const uint32_t slot = slot_of(id);
  if (slot >= slots_.size() || !slots_[slot]) return nullptr;
  Connection& connection = *slots_[slot];
  return connection.id() == id && !connection.is_closed() ? &connection : nullptr;
}

bool EventLoop::answer(ConnectionId id, const Response& response) {
  Connection* const connection = find(id);
  return connection && connection->answer(response);
}

void EventLoop::set_timer(ConnectionId id, Duration delay) {
  if (Connection* const connection = find(id)) connection->set_timer(later(now_, delay));
}

void EventLoop::watch(ConnectionId id) {
  if (Connection* const connection = find(id)) connection->watch();
}

bool EventLoop::stream(ConnectionId id, const std::shared_ptr<const std::string>& bytes) {
  Connection* const connection = find(id);
  return connection && connection->stream(bytes);
}

void EventLoop::close(ConnectionId id) {
  if (Connection* const connection = find(id)) connection->close_when_written();
}

void EventLoop::release(uint64_t sequence) {
  if (sequence <= released_) return;
  released_ = sequence;
  while (!gated_.empty() && gated_.front().gate() <= released_) {
    Connection& connection = gated_.front();
    gated_.pop_front();
    schedule(connection);
  }
}

// Sequences nearly always come in order, so the place is at the end, or close to it.
void EventLoop::hold_back(Connection& connection) {
  connection.gate_hook_.unlink();
  auto before = gated_.end();
  while (before != gated_.begin() && std::prev(before)->gate() > connection.gate()) --before;
  gated_.insert(before, connection);
}

void EventLoop::schedule(Connection& connection) {
  if (std::exchange(connection.scheduled_, true)) return;
  scheduled_.push_back(&connection);
}

std::unique_ptr<OutBuffer> EventLoop::take_buffer() {
  if (spare_buffers_.empty()) return std::make_unique<OutBuffer>();
  std::unique_ptr<OutBuffer> buffer = std::move(spare_buffers_.back());
  spare_buffers_.pop_back();
  return buffer;
}

void EventLoop::give_buffer(std::unique_ptr<OutBuffer> buffer) {
  if (spare_buffers_.size() >= kSpareBuffers || buffer->capacity() > kLargestSpare) return;
  buffer->clear();
  spare_buffers_.push_back(std::move(buffer));
}

void EventLoop::closed(Connection& connection) {
  deadlines_.erase(connection);
  --open_;
  (connection.is_refused_ ? counters_.refused_open : counters_.connections_open)
      .fetch_sub(1, std::memory_order_relaxed);
  if (!connection.has_operations()) bury(connection);
}

void EventLoop::bury(Connection& connection) {
  if (!connection.has_operations()) buried_.push_back(slot_of(connection.id()));
}

void EventLoop::set_heap_deadline(Connection& connection) {
  if (connection.is_closed()) return;
  connection.heap_deadline_ = connection.deadline();
  deadlines_.set(connection, connection.heap_deadline_);
  if (deadlines_.next() < armed_for_) arm();
}

void EventLoop::arm() {
  armed_for_ = std::max(deadlines_.next(), now_ + kTick);
  timer_.expires_after(armed_for_ - now_);
  timer_.async_wait([this](const error_code& failure) {
    if (!failure) sweep();
  });
}

// An entry that comes due may be out of date: connections tell the heap only when a deadline comes nearer.
void EventLoop::sweep() {
  Turn turn(*this);
  armed_for_ = kNever;
  while (Connection* const connection = deadlines_.take_due(now_)) {
    connection->heap_deadline_ = kNever;
    connection->deadline() <= now_ ? connection->on_deadline(now_) : update_deadline(*connection);
  }
  if (!deadlines_.empty() && deadlines_.next() < armed_for_) arm();
}

template <class Act>
void EventLoop::for_all(Act act) {
  for (const auto& connection : slots_) {
    if (connection && !connection->is_closed()) act(*connection);
  }
}

void EventLoop::stop_when_drained() {
  asio::post(io_, [this] {
    Turn turn(*this);
    draining_ = true;
    for_all([](Connection& connection) { connection.drain(); });
  });
}

}  // namespace turnstile::http
