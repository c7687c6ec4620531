// Simulated connections, and the loop that serves them: what http/event_loop and the network are to a real
// server, at the granularity of requests and answers.
//
// The loop keeps the contract of http.h and works in turns as EventLoop does: what has arrived, then tasks,
// then what has become ready for others; receipts at the end of the turn. The network keeps the order of each
// direction of a connection, and takes its time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/http.h"
#include "schedule.h"

namespace turnstile::sim {

class SimLoop;

struct WireRequest {
  bool post = true;
  std::string target, body, last_event_id;
};

// The other end of a connection. `stamp` says in which order things were handed to the server's kernel.
class Remote {
 public:
  virtual ~Remote() = default;
  virtual void on_answer(unsigned status, const std::string& body, uint64_t stamp) = 0;
  virtual void on_bytes(const std::string& bytes, uint64_t stamp) = 0;  // of a stream
  virtual void on_closed() = 0;
};

// One connection. Shared by its two ends and by what is under way between them.
struct Link {
  Schedule& schedule;
  SimLoop* loop = nullptr;  // none: the server has closed it, or is no more
  http::ConnectionId id = http::ConnectionId::none;
  Remote* remote = nullptr;  // none: the client has closed it
  bool is_stream = false;
  uint64_t requests = 0, answers = 0;  // that the client has sent, and the server has handed to its kernel
  bool reads = true;                   // else what arrives stays in the kernel's buffer
  size_t in_kernel = 0;                // bytes that the client has not read
  Time client_closed = kNever, server_closed = kNever;
  Duration slowest{std::chrono::milliseconds(1)};  // of what is under way

  explicit Link(Schedule& of) : schedule(of) {}
  Time arrival(Time& last);
  Time last_up{}, last_down{};
  std::deque<std::pair<std::string, uint64_t>> unread;  // of a reader that does not read
};
using LinkPtr = std::shared_ptr<Link>;

// The client's side.
void send(const LinkPtr& link, WireRequest request);
void close_by_client(const LinkPtr& link, bool reset);
void set_reading(const LinkPtr& link, bool reads);

// How often something happened that only happens when things come together.
using Rare = std::map<std::string, uint64_t>;

// Threads: one; what is posted "from other threads" comes from other happenings.
class SimLoop final : public http::Loop {
 public:
  SimLoop(unsigned index, const http::Limits& limits, Schedule& schedule, Rare& rare)
      : index_(index), limits_(limits), schedule_(schedule), rare_(rare) {}
  ~SimLoop() override;

  void set_handler(std::unique_ptr<http::Handler> handler) { handler_ = std::move(handler); }
  // After each turn: the journal may have something to write.
  std::function<void()> on_turn;
  // An answer has been handed to the kernel.
  std::function<void(uint64_t stamp)> on_answer_left;
  // The process is stopped until then (SIGSTOP).
  void pause_until(Time time) { paused_until_ = time; }
  // Nothing happens here any more; the peers are told.
  void die();

  LinkPtr connect(Remote& remote);
  // What the network brings.
  void arrived(const LinkPtr& link, WireRequest request);
  void peer_closed(const LinkPtr& link, bool reset);
  void peer_has_read(const LinkPtr& link);

  unsigned index() const override { return index_; }
  void post(std::function<void()> task) override;
  bool answer(http::ConnectionId connection, const http::Response& response) override;
  void set_timer(http::ConnectionId connection, Duration delay) override;
  void watch(http::ConnectionId connection) override;
  http::Streamed stream(http::ConnectionId connection,
                        const std::shared_ptr<const std::string>& bytes) override;
  void tell_when_drained(http::ConnectionId connection) override;
  void close(http::ConnectionId connection) override;
  void open_gate(uint64_t gate) override;
  void drop_output() override;
  size_t connections() const override { return wires_.size(); }

 private:
  enum class State : uint8_t { reading, waiting, streaming, ending, closed };
  // Something that leaves as a whole.
  struct Output {
    bool is_answer = false;
    unsigned status = 200;
    std::string bytes;
  };
  struct Wire {
    LinkPtr link;
    State state = State::reading;
    std::deque<WireRequest> inbox;
    std::deque<Output> out;
    size_t stream_bytes = 0;  // in `out`, of the stream
    std::vector<http::Receipt> receipts;
    uint64_t gate = 0;
    bool gated = false, scheduled = false, handling = false, notified = false, watched = false, full = false;
    bool blocked = false;  // the kernel had no room
    bool input_ended = false;
    uint64_t timer = 0;  // counts: only the latest is in force
  };
  class OneResponder;

  void want_turn();
  void turn();
  void proceed(Wire& wire);
  void handle(Wire& wire, const WireRequest& request);
  void append(Wire& wire, const http::Response& response);
  void note_leaving(Wire& wire, const http::Response& response);
  void flush(Wire& wire);
  void write(Wire& wire, Output output);
  void drained(Wire& wire);
  void block(Wire& wire);
  void collect(Wire& wire, bool lost);
  void schedule(Wire& wire);
  void schedule_unless_handling(Wire& wire);
  void close_when_written(Wire& wire);
  void close_now(Wire& wire);
  void broken(Wire& wire);
  void tell_closed(Wire& wire, State before);
  Wire* find(http::ConnectionId id);

  const unsigned index_;
  const http::Limits limits_;
  Schedule& schedule_;
  Rare& rare_;
  bool dead_ = false, turn_is_due_ = false;
  std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  // for happenings that outlive this
  Time paused_until_{};
  uint64_t last_number_ = 0;
  std::map<uint64_t, std::unique_ptr<Wire>> wires_;  // by id: an order that is the same each time
  std::deque<std::function<void()>> tasks_;
  std::deque<uint64_t> ready_, scheduled_;  // ids
  std::vector<http::Receipt> collected_;
  std::unique_ptr<http::Handler> handler_;
};

}  // namespace turnstile::sim
