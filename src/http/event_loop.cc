#include "http/event_loop.h"

#include <pthread.h>

#include "base/check.h"
#include "base/log.h"

namespace turnstile::http {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(10);
constexpr unsigned kSlotBits = 20;  // of an id; above them a number that is never used twice
constexpr uint64_t kSlotMask = (uint64_t(1) << kSlotBits) - 1;
// One success may end 10,000 waits, and a thousand streams may have to be cut: others get their turn between.
constexpr size_t kScheduledATurn = 64;
constexpr Duration kGreetingATurn = std::chrono::microseconds(200);
constexpr Duration kGreetingLog = std::chrono::seconds(1);
constexpr size_t kDropScheduled = 4096;
constexpr size_t kSpareBuffers = 256;
constexpr size_t kLargestSpare = 64 * 1024;

uint32_t slot_of(ConnectionId id) { return uint32_t(uint64_t(id) & kSlotMask); }

}  // namespace

EventLoop::EventLoop(unsigned index, const Limits& limits, Statistics& statistics)
    : index_(index), limits_(limits), statistics_(statistics) {
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
  if (ended_.wait_until(deadline) != std::future_status::ready) stop();
  thread_.join();
  // Connections that are left are closed, without a word to the handler: the world ends, not their peers.
  for_all([](Connection& connection) { connection.close_now(); });
}

void EventLoop::run() {
  pthread_setname_np(pthread_self(), ("http-" + std::to_string(index_)).c_str());
  try {
    while (!stopping_.load(std::memory_order_relaxed)) {
      if (!work({})) wait_for_work();
    }
  } catch (const std::exception& failure) {
    log_error("an HTTP loop ended by an exception", {{"what", failure.what()}});
    TS_CHECK(false, "nothing throws out of an HTTP loop");
  }
}

// Whatever there is to do, after at most `patience` of waiting for it. Returns whether there was anything.
bool EventLoop::work(std::chrono::milliseconds patience) {
  const bool ready = poller_.wait(patience);
  const bool tasks = has_tasks_.load(std::memory_order_acquire);
  now_ = clock_.now();
  if (ready) poller_.dispatch();
  if (tasks) run_tasks();
  if (now_ >= next_sweep_) sweep();
  end_turn();
  return ready || tasks || has_scheduled() || !greeting_.empty();
}

// Looks for work for a moment before it sleeps, if that is likely to find some: to be woken from sleep takes
// longer than most requests, and a lock that is handed around pays for it at every step (decision 0012).
void EventLoop::wait_for_work() {
  using From = LookPredictor::From;
  const From from = gated_.empty() ? From::peers : From::disk;
  const Time since = clock_.now();
  bool found = false;
  if (spins_ && look_.pays(from)) {
    do found = work({});
    while (!found && !stopping_.load(std::memory_order_relaxed) &&
           now_ - since < LookPredictor::kLongestLook);
  }
  if (!found) sleep();
  // now_ is when the wait ended; what was done then is not part of it.
  look_.learn(from, now_ - since, found);
}

void EventLoop::sleep() {
  using std::chrono::milliseconds;
  milliseconds patience(-1);
  if (next_sweep_ != kNever) {
    const auto left = std::chrono::ceil<milliseconds>(next_sweep_ - clock_.now());
    patience = std::clamp(left, milliseconds(0), milliseconds(std::chrono::minutes(1)));
  }
  asleep_.store(true);
  work(has_tasks_.load() || stopping_.load() ? milliseconds(0) : patience);
  asleep_.store(false);
}

void EventLoop::stop() {
  stopping_.store(true);
  poller_.wake();
}

void EventLoop::post(std::function<void()> task) {
  {
    Locked lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  has_tasks_.store(true);
  if (asleep_.load()) poller_.wake();
}

void EventLoop::adopt(Arrival arrival) {
  // Shared, because a task can be copied and a descriptor cannot.
  auto shared = std::make_shared<Arrival>(std::move(arrival));
  post([this, shared] { take_in(std::move(*shared)); });
}

void EventLoop::take_in(Arrival arrival) {
  const bool refused = arrival.refused, tls = arrival.tls != nullptr;
  auto& open_counter = refused ? statistics_.refused_open : statistics_.connections_open;
  if (draining_ || (free_slots_.empty() && slots_.size() > kSlotMask)) {
    open_counter.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  if (free_slots_.empty()) {
    free_slots_.push_back(uint32_t(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  const uint64_t id = uint64_t(index_) << 56 | ++last_number_ << kSlotBits | slot;
  slots_[slot] = std::make_unique<Connection>(*this, std::move(arrival), ConnectionId(id));
  Connection& connection = *slots_[slot];
  ++open_;
  if (!connection.start()) return connection.close_now();
  if (!refused || tls) return;  // with TLS: when it has been greeted
  connection.refuse_as_too_many();
  connection.proceed();
}

// All tasks that are there, in one turn: the answers to a batch are written together.
void EventLoop::run_tasks() {
  has_tasks_.store(false);
  {
    Locked lock(mutex_);
    running_tasks_.swap(tasks_);
  }
  for (const auto& task : running_tasks_) task();
  running_tasks_.clear();
}

void EventLoop::end_turn() {
  proceed_scheduled();
  if (!greeting_.empty()) greet_some();
  if (unsent_ > limits_.max_loop_backlog) cut_slowest();
  if (!collected_.empty()) {
    written_.swap(collected_);
    handler_->on_written(written_);
    written_.clear();
  }
  bury();
  if (draining_ && open_ == 0) stopping_.store(true);
}

void EventLoop::proceed_scheduled() {
  for (size_t budget = kScheduledATurn; budget > 0 && has_scheduled(); --budget) {
    Connection& connection = *scheduled_[next_scheduled_++];
    connection.scheduled_ = false;
    connection.proceed();
  }
  // Under load there may always be somebody, so what is done is dropped now and then.
  if (has_scheduled() && next_scheduled_ < kDropScheduled) return;
  scheduled_.erase(scheduled_.begin(), scheduled_.begin() + ptrdiff_t(next_scheduled_));
  next_scheduled_ = 0;
}

void EventLoop::greet_later(Connection& connection) {
  if (!connection.greeting_hook_.is_linked()) greeting_.push_back(connection);
}

// In the order in which they came. A step with the server's key takes as long as a hundred requests, and
// there may be thousands of them: all others get their turn in between. Time, and not a number, because RSA
// takes ten times as long as ECDSA.
void EventLoop::greet_some() {
  const Time until = later(clock_.now(), kGreetingATurn);
  do {
    Connection& connection = greeting_.front();
    greeting_.pop_front();
    connection.greet();
  } while (!greeting_.empty() && clock_.now() < until);
}

// Now and then, with how many there were: anybody can make them fail, and must not fill the log.
void EventLoop::note_failed_greeting(const std::string& address, const char* problem) {
  ++failed_greetings_;
  if (now_ < next_greeting_log_) return;
  next_greeting_log_ = later(now_, kGreetingLog);
  log_warning("a TLS handshake failed",
              {{"address", address}, {"why", problem}, {"handshakes", std::exchange(failed_greetings_, 0)}});
}

// Output that nobody reads must not take all memory: who has kept it longest goes first.
void EventLoop::cut_slowest() {
  while (unsent_ > limits_.max_loop_backlog && !slow_.empty()) slow_.front().cut_off();
}

void EventLoop::collect(OutBuffer& buffer) {
  collected_.insert(collected_.end(), buffer.receipts.begin(), buffer.receipts.end());
  buffer.receipts.clear();
}

void EventLoop::note_unsent(Connection& connection, bool has_taken) {
  const size_t unsent = connection.is_closed() ? 0 : connection.unsent();
  if (unsent == 0 && connection.unsent_ == 0) return;
  unsent_ = unsent_ - connection.unsent_ + unsent;
  connection.unsent_ = unsent;
  if (has_taken || unsent == 0) connection.slow_hook_.unlink();
  if (unsent > 0 && !connection.slow_hook_.is_linked()) slow_.push_back(connection);
}

// A closed connection that is still scheduled keeps its place until its turn has come.
void EventLoop::bury() {
  std::erase_if(buried_, [this](uint32_t slot) {
    if (slots_[slot]->scheduled_) return false;
    slots_[slot].reset();
    free_slots_.push_back(slot);
    return true;
  });
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

Streamed EventLoop::stream(ConnectionId id, const std::shared_ptr<const std::string>& bytes) {
  Connection* const connection = find(id);
  return connection ? connection->stream(bytes) : Streamed::gone;
}

void EventLoop::tell_when_drained(ConnectionId id) {
  if (Connection* const connection = find(id)) connection->tell_when_drained();
}

void EventLoop::close(ConnectionId id) {
  if (Connection* const connection = find(id)) connection->close_when_written();
}

void EventLoop::open_gate(uint64_t gate) {
  while (!gated_.empty() && gated_.front().gate() <= gate) {
    Connection& connection = gated_.front();
    gated_.pop_front();
    schedule(connection);
  }
}

void EventLoop::drop_output() {
  for_all([](Connection& connection) {
    if (connection.unsent() > 0) connection.cut_off();
  });
}

void EventLoop::replace_output(const Response& instead) {
  for_all([&](Connection& connection) {
    if (connection.unsent() > 0 && !connection.replace_output(instead)) connection.cut_off();
  });
}

// Gates nearly always come in order, so the place is at the end, or close to it.
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
  collect(*buffer);
  if (spare_buffers_.size() >= kSpareBuffers || buffer->capacity() > kLargestSpare) return;
  buffer->clear();
  spare_buffers_.push_back(std::move(buffer));
}

void EventLoop::closed(Connection& connection) {
  deadlines_.erase(connection);
  connection.greeting_hook_.unlink();
  note_unsent(connection, false);
  --open_;
  (connection.is_refused_ ? statistics_.refused_open : statistics_.connections_open)
      .fetch_sub(1, std::memory_order_relaxed);
  buried_.push_back(slot_of(connection.id()));
}

void EventLoop::set_heap_deadline(Connection& connection) {
  if (connection.is_closed()) return;
  connection.heap_deadline_ = connection.deadline();
  deadlines_.set(connection, connection.heap_deadline_);
  if (deadlines_.next() < next_sweep_) next_sweep_ = std::max(deadlines_.next(), now_ + kTick);
}

// An entry that comes due may be out of date: connections tell the heap only when a deadline comes nearer.
void EventLoop::sweep() {
  next_sweep_ = kNever;
  while (Connection* const connection = deadlines_.take_due(now_)) {
    connection->heap_deadline_ = kNever;
    connection->deadline() <= now_ ? connection->on_deadline(now_) : update_deadline(*connection);
  }
  if (!deadlines_.empty()) next_sweep_ = std::max(deadlines_.next(), now_ + kTick);
}

template <class Act>
void EventLoop::for_all(Act act) {
  for (const auto& connection : slots_) {
    if (connection && !connection->is_closed()) act(*connection);
  }
}

void EventLoop::stop_when_drained() {
  post([this] {
    draining_ = true;
    for_all([](Connection& connection) { connection.drain(); });
  });
}

}  // namespace turnstile::http
