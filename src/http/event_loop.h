// One thread of the server: its connections, its sweep over their deadlines, and what other threads have for
// it.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "base/unique_fd.h"
#include "http/connection.h"
#include "http/look_predictor.h"
#include "http/poller.h"
#include "http/statistics.h"

namespace turnstile::http {

// Implements Loop.
//
// Everything happens in turns: what epoll has found, then the posted tasks, then what is due. A request is
// handled and answered on the spot; what it makes ready for others (answers, output whose gate has opened,
// events for streams) is written at the end of the turn, some at a time; then Handler::on_written() gets the
// receipts of what has been; and connections that have ended are destroyed, when no event can name them any
// more. Time: reads its clock
// once a turn. Deadlines are swept together, at most every kTick. Threads: owns one. Other threads use
// post(), adopt() and stop_when_drained() only.
class EventLoop final : public Loop {
 public:
  EventLoop(unsigned index, const Limits& limits, Statistics& statistics);
  ~EventLoop() override;

  void create_handler(const HandlerFactory& factory) { handler_ = factory(*this); }
  void start();
  // Waits until the loop has ended by itself; at the deadline it is ended.
  void join_until(std::chrono::steady_clock::time_point deadline);
  Poller& poller() { return poller_; }

  void adopt(Arrival arrival);
  // Closes what is idle, ends connections with their next answer, and stops when none is left.
  void stop_when_drained();

  unsigned index() const override { return index_; }
  void post(std::function<void()> task) override;
  bool answer(ConnectionId connection, const Response& response) override;
  void set_timer(ConnectionId connection, Duration delay) override;
  void watch(ConnectionId connection) override;
  Streamed stream(ConnectionId connection, const std::shared_ptr<const std::string>& bytes) override;
  void tell_when_drained(ConnectionId connection) override;
  void close(ConnectionId connection) override;
  void open_gate(uint64_t gate) override;
  void drop_output() override;
  void replace_output(const Response& instead) override;
  size_t connections() const override { return open_; }

  // For connections.
  Time now() const { return now_; }
  const Limits& limits() const { return limits_; }
  Handler& handler() { return *handler_; }
  ResponseWriter& writer() { return writer_; }
  Statistics& statistics() { return statistics_; }
  bool is_draining() const { return draining_; }
  std::unique_ptr<OutBuffer> take_buffer();
  void give_buffer(std::unique_ptr<OutBuffer> buffer);
  // proceed() is due at the end of this turn, or soon after.
  void schedule(Connection& connection);
  // How many have been scheduled and not had their turn.
  size_t scheduled() const { return scheduled_.size() - next_scheduled_; }
  // Its handshake can go on, at the end of this turn or soon after.
  void greet_later(Connection& connection);
  void note_failed_greeting(const std::string& address, const char* problem);
  // Its output is behind the gate.
  void hold_back(Connection& connection);
  // Takes over the receipts of what has been written, or never will be.
  void collect(OutBuffer& buffer);
  // A connection's buffer for what comes in becomes larger or smaller. The first block, which each has, does
  // not count: what does is of requests that say they are large.
  bool may_take_input(size_t before, size_t after) const {
    return after <= before || input_ + large(after) - large(before) <= limits_.max_loop_input;
  }
  void note_input(size_t before, size_t after) { input_ += large(after) - large(before); }
  // How much of it the kernel did not take has changed.
  void note_unsent(Connection& connection, bool has_taken);
  void update_deadline(Connection& connection) {
    if (connection.deadline() < connection.heap_deadline_) set_heap_deadline(connection);
  }
  void closed(Connection& connection);

 private:
  static size_t large(size_t capacity) { return capacity - std::min(capacity, InBuffer::kStart); }

  template <Connection::Hook Connection::* hook>
  using List =
      boost::intrusive::list<Connection, boost::intrusive::member_hook<Connection, Connection::Hook, hook>,
                             boost::intrusive::constant_time_size<false>>;

  void run();
  bool work(std::chrono::milliseconds patience);
  void wait_for_work();
  void sleep();
  void stop();
  void run_tasks();
  void take_in(Arrival arrival);
  bool has_scheduled() const { return next_scheduled_ < scheduled_.size(); }
  void end_turn();
  void proceed_scheduled();
  void greet_some();
  void cut_slowest();
  void bury();
  Connection* find(ConnectionId id);
  void set_heap_deadline(Connection& connection);
  void sweep();
  template <class Act>
  void for_all(Act act);

  const unsigned index_;
  const Limits limits_;
  Statistics& statistics_;
  const Clock clock_;
  Poller poller_;
  std::thread thread_;
  std::future<void> ended_;

  Mutex mutex_;
  std::vector<std::function<void()>> tasks_ TS_GUARDED_BY(mutex_);
  // Who adds a task sets has_tasks_ and then looks at asleep_; the loop sets asleep_ and then looks at
  // has_tasks_: one of the two sees the other, and a loop that is awake costs nobody a system call.
  std::atomic<bool> has_tasks_{false}, asleep_{false}, stopping_{false};

  // The loop's thread only:
  Time now_{};
  Time next_sweep_ = kNever;
  const bool spins_ = std::thread::hardware_concurrency() > 1;
  LookPredictor look_;
  DeadlineHeap<Connection, &Connection::place_> deadlines_;
  ResponseWriter writer_;
  uint64_t last_number_ = 0;  // of connections
  size_t open_ = 0;
  bool draining_ = false;
  size_t input_ = 0;                          // of all that came and is not whole
  size_t unsent_ = 0;                         // what the kernel did not take, of all slow readers
  std::vector<Receipt> collected_, written_;  // for on_written(): of this turn; the ones it is given
  std::vector<std::unique_ptr<OutBuffer>> spare_buffers_;
  std::vector<std::unique_ptr<Connection>> slots_;  // by the lower bits of the id
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> buried_;        // slots to be freed when no event can name them
  std::vector<Connection*> scheduled_;  // from next_scheduled_ on
  size_t next_scheduled_ = 0;
  std::vector<std::function<void()>> running_tasks_;
  List<&Connection::gate_hook_> gated_;  // in order of gate()
  List<&Connection::greeting_hook_> greeting_;
  Time next_greeting_log_{};
  uint64_t failed_greetings_ = 0;       // since the last one that was logged
  List<&Connection::slow_hook_> slow_;  // readers for which the kernel has no room, the slowest first
  std::unique_ptr<Handler> handler_;    // destroyed before what it may still call
};

}  // namespace turnstile::http
