// One thread of the server: its connections, its sweep over their deadlines, and what other threads have for
// it.
#pragma once

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "http/asio.h"
#include "http/connection.h"
#include "http/counters.h"
#include "http/unique_fd.h"

namespace turnstile::http {

// Implements Loop.
//
// Everything happens in turns: an event of Asio's, or a batch of posted tasks. What a turn makes ready
// (answers to other connections, released output, events for streams) is written at its end, then
// Handler::on_written() is called, then connections that have ended are destroyed. Time: reads its clock once
// a turn. Deadlines are swept by one timer, at most every kTick. Threads: owns one. Other threads use post(),
// adopt() and stop_when_drained() only.
class EventLoop final : public Loop {
 public:
  EventLoop(unsigned index, const Limits& limits, Counters& counters);
  ~EventLoop() override;

  void create_handler(const HandlerFactory& factory) { handler_ = factory(*this); }
  void start();
  // Waits until the loop has ended by itself; at the deadline it is ended.
  void join_until(std::chrono::steady_clock::time_point deadline);
  Io& io() { return io_; }

  // Takes a connected, non-blocking socket; `refused`: only to be told that the server is full.
  void adopt(UniqueFd socket, int family, bool refused);
  // Closes what is idle, ends connections with their next answer, and stops when none is left.
  void stop_when_drained();

  unsigned index() const override { return index_; }
  void post(std::function<void()> task) override;
  bool answer(ConnectionId connection, const Response& response) override;
  void set_timer(ConnectionId connection, Duration delay) override;
  void watch(ConnectionId connection) override;
  bool stream(ConnectionId connection, const std::shared_ptr<const std::string>& bytes) override;
  void close(ConnectionId connection) override;
  void release(uint64_t sequence) override;
  size_t connections() const override { return open_; }

  // Every entry from outside is inside one of these.
  class Turn {
   public:
    explicit Turn(EventLoop& loop) : loop_(loop) { loop_.now_ = loop_.clock_.now(); }
    ~Turn() { loop_.end_turn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    EventLoop& loop_;
  };

  // For connections.
  Time now() const { return now_; }
  const Limits& limits() const { return limits_; }
  Handler& handler() { return *handler_; }
  ResponseWriter& writer() { return writer_; }
  Counters& counters() { return counters_; }
  uint64_t released() const { return released_; }
  bool is_draining() const { return draining_; }
  std::unique_ptr<OutBuffer> take_buffer();
  void give_buffer(std::unique_ptr<OutBuffer> buffer);
  // proceed() is due at the end of this turn.
  void schedule(Connection& connection);
  bool has_scheduled() const { return !scheduled_.empty(); }
  // Its output is behind the gate.
  void hold_back(Connection& connection);
  void note_written() { written_ = true; }
  void update_deadline(Connection& connection) {
    if (connection.deadline() < connection.heap_deadline_) set_heap_deadline(connection);
  }
  void closed(Connection& connection);
  // Its last operation has ended after it was closed.
  void bury(Connection& connection);

 private:
  using GateList = boost::intrusive::list<
      Connection,
      boost::intrusive::member_hook<Connection, decltype(Connection::gate_hook_), &Connection::gate_hook_>,
      boost::intrusive::constant_time_size<false>>;

  void run();
  void wait_for_work();
  void run_tasks();
  void end_turn();
  Connection* find(ConnectionId id);
  void set_heap_deadline(Connection& connection);
  void arm();
  void sweep();
  template <class Act>
  void for_all(Act act);

  const unsigned index_;
  const Limits limits_;
  Counters& counters_;
  const Clock clock_;
  Io io_;
  asio::executor_work_guard<Io::executor_type> work_;
  Timer timer_;
  std::thread thread_;
  std::future<void> ended_;

  Mutex mutex_;
  std::vector<std::function<void()>> tasks_ TS_GUARDED_BY(mutex_);

  // The loop's thread only:
  Time now_{};
  Time armed_for_ = kNever;
  const bool spins_ = std::thread::hardware_concurrency() > 1;
  std::chrono::nanoseconds last_idle_{std::chrono::seconds(1)};  // how long it last waited for work
  DeadlineHeap<Connection, &Connection::place_> deadlines_;
  ResponseWriter writer_;
  uint64_t released_ = 0;
  uint64_t last_number_ = 0;  // of connections
  size_t open_ = 0;
  bool draining_ = false;
  bool written_ = false;
  std::vector<std::unique_ptr<OutBuffer>> spare_buffers_;
  std::vector<std::unique_ptr<Connection>> slots_;  // by the lower bits of the id
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> buried_;  // slots to be freed at the end of the turn
  std::vector<Connection*> scheduled_, proceeding_;
  std::vector<std::function<void()>> running_tasks_;
  GateList gated_;                    // in order of gate()
  std::unique_ptr<Handler> handler_;  // destroyed before what it may still call
};

}  // namespace turnstile::http
