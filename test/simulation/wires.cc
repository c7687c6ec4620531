#include "wires.h"

#include <utility>

#include "base/check.h"
#include "http/peer.h"

namespace turnstile::sim {
namespace {

constexpr size_t kKernelBuffer = 1000;  // of the server's side of a connection
constexpr size_t kScheduledATurn = 4;   // few, so that turns that are not finished happen

std::pair<std::string_view, std::string_view> split_target(std::string_view target) {
  const size_t at = target.find('?');
  if (at == target.npos) return {target, {}};
  return {target.substr(0, at), target.substr(at + 1)};
}

}  // namespace

Time Link::arrival(Time& last) {
  const Duration delay = schedule.random.chance(20) ? slowest * 20 : slowest;
  last = std::max(last + Duration(1), schedule.now() + Duration(schedule.random.between(10, delay.count())));
  return last;
}

void send(const LinkPtr& link, WireRequest request) {
  ++link->requests;
  link->schedule.at(link->arrival(link->last_up), [link, request = std::move(request)] {
    if (link->loop != nullptr) link->loop->arrived(link, request);
  });
}

void close_by_client(const LinkPtr& link, bool reset) {
  if (link->remote == nullptr) return;
  link->remote = nullptr;
  link->client_closed = link->schedule.now();
  link->schedule.at(link->arrival(link->last_up), [link, reset] {
    if (link->loop != nullptr) link->loop->peer_closed(link, reset);
  });
}

namespace {
void read_one(const LinkPtr& link, const std::string& bytes, uint64_t stamp) {
  link->in_kernel -= std::min(link->in_kernel, bytes.size());
  if (link->remote != nullptr) link->remote->on_bytes(bytes, stamp);
  if (link->loop != nullptr) link->loop->peer_has_read(link);
}
}  // namespace

void set_reading(const LinkPtr& link, bool reads) {
  link->reads = reads;
  while (link->reads && !link->unread.empty()) {
    const auto [bytes, stamp] = std::move(link->unread.front());
    link->unread.pop_front();
    read_one(link, bytes, stamp);
  }
}

// The Responder of one request.
class SimLoop::OneResponder final : public http::Responder {
 public:
  OneResponder(SimLoop& loop, Wire& wire) : loop_(loop), wire_(wire) {}
  void respond(const http::Response& response) override {
    TS_CHECK(wire_.state == State::waiting, "a request is answered once");
    loop_.append(wire_, response);
  }
  void start_stream(const http::Response& begin) override {
    TS_CHECK(wire_.state == State::waiting, "a request is answered once");
    wire_.out.push_back({.is_answer = false, .status = 200, .bytes = std::string(begin.body)});
    loop_.note_leaving(wire_, begin);
    wire_.state = wire_.notified ? State::ending : State::streaming;
    wire_.link->is_stream = true;
  }

 private:
  SimLoop& loop_;
  Wire& wire_;
};

SimLoop::~SimLoop() { *gone_ = true; }

void SimLoop::die() {
  dead_ = true;
  *gone_ = true;
  for (auto& [id, wire] : wires_) {
    const LinkPtr link = wire->link;
    link->loop = nullptr;
    link->server_closed = std::min(link->server_closed, schedule_.now());
    schedule_.at(link->arrival(link->last_down), [link] {
      if (Remote* const remote = std::exchange(link->remote, nullptr)) remote->on_closed();
    });
  }
  wires_.clear();
}

LinkPtr SimLoop::connect(Remote& remote) {
  auto link = std::make_shared<Link>(schedule_);
  link->loop = this;
  link->remote = &remote;
  link->id = http::ConnectionId(uint64_t(index_) << 56 | ++last_number_);
  auto wire = std::make_unique<Wire>();
  wire->link = link;
  wires_.emplace(uint64_t(link->id), std::move(wire));
  return link;
}

SimLoop::Wire* SimLoop::find(http::ConnectionId id) {
  const auto found = wires_.find(uint64_t(id));
  return found == wires_.end() || found->second->state == State::closed ? nullptr : found->second.get();
}

void SimLoop::arrived(const LinkPtr& link, WireRequest request) {
  Wire* const wire = find(link->id);
  if (wire == nullptr) return;
  wire->inbox.push_back(std::move(request));
  ready_.push_back(uint64_t(link->id));
  want_turn();
}

void SimLoop::peer_closed(const LinkPtr& link, bool reset) {
  Wire* const wire = find(link->id);
  if (wire == nullptr) return;
  if (reset) {
    // As a task: it is noticed in a turn, like everything else.
    post([this, id = link->id] {
      if (Wire* const still = find(id)) broken(*still);
    });
    return;
  }
  wire->input_ended = true;
  ready_.push_back(uint64_t(link->id));
  want_turn();
}

void SimLoop::peer_has_read(const LinkPtr& link) {
  Wire* const wire = find(link->id);
  if (wire == nullptr || !wire->blocked || link->in_kernel > kKernelBuffer / 2) return;
  wire->blocked = false;
  ready_.push_back(uint64_t(link->id));
  want_turn();
}

void SimLoop::post(std::function<void()> task) {
  tasks_.push_back(std::move(task));
  want_turn();
}

void SimLoop::want_turn() {
  if (turn_is_due_ || dead_) return;
  turn_is_due_ = true;
  // Now and then the thread does not get a core for a while.
  Duration delay(schedule_.random.between(1, schedule_.random.chance(50) ? 20'000 : 150));
  const Time when = std::max(schedule_.now() + delay, paused_until_);
  schedule_.at(when, [this, gone = gone_] {
    if (!*gone) turn();
  });
}

void SimLoop::turn() {
  turn_is_due_ = false;
  if (paused_until_ > schedule_.now()) return want_turn();
  const std::deque<uint64_t> ready = std::exchange(ready_, {});
  for (const uint64_t id : ready)
    if (Wire* const wire = find(http::ConnectionId(id))) proceed(*wire);
  const std::deque<std::function<void()>> tasks = std::exchange(tasks_, {});
  for (const auto& task : tasks) task();
  for (size_t budget = kScheduledATurn; budget > 0 && !scheduled_.empty(); --budget) {
    const uint64_t id = scheduled_.front();
    scheduled_.pop_front();
    if (Wire* const wire = find(http::ConnectionId(id))) {
      wire->scheduled = false;
      proceed(*wire);
    }
  }
  if (!collected_.empty()) handler_->on_written(std::exchange(collected_, {}));
  std::erase_if(wires_, [](const auto& entry) { return entry.second->state == State::closed; });
  if (!scheduled_.empty() || !collected_.empty()) {
    ++rare_["turns that could not write all that was ready"];
    want_turn();
  }
  on_turn();
}

void SimLoop::proceed(Wire& wire) {
  if (wire.state == State::closed) return;
  const size_t scheduled = scheduled_.size();
  while (wire.state == State::reading && !wire.blocked && !wire.inbox.empty()) {
    const WireRequest request = std::move(wire.inbox.front());
    wire.inbox.pop_front();
    handle(wire, request);
  }
  if (scheduled_.size() > scheduled) return schedule(wire);  // what it made ready for others goes first
  flush(wire);
  if (wire.state == State::closed || !wire.input_ended) return;
  if (wire.state == State::streaming) return broken(wire);
  if (!wire.inbox.empty() && wire.state == State::reading) return;
  tell_closed(wire, wire.state);
  if (wire.state == State::reading || (wire.notified && wire.state != State::waiting))
    close_when_written(wire);
}

void SimLoop::handle(Wire& wire, const WireRequest& sent) {
  const auto [path, query] = split_target(sent.target);
  std::string body = sent.body;
  const size_t size = body.size();
  body.resize(size + http::kBodyPadding);
  http::Request request;
  request.method = sent.post ? http::Method::post : http::Method::get;
  request.method_text = sent.post ? "POST" : "GET";
  request.path = path;
  request.query = query;
  request.body = std::string_view(body).substr(0, size);
  request.last_event_id = sent.last_event_id;
  static const http::Peer peer{.address = "127.0.0.1"};
  request.peer = &peer;
  request.connection = wire.link->id;
  OneResponder responder(*this, wire);
  wire.state = State::waiting;
  wire.handling = true;
  const http::Handled handled = handler_->handle(request, responder);
  wire.handling = false;
  if (wire.state == State::waiting) {
    TS_CHECK(handled == http::Handled::waiting, "a handler that says it has answered has done so");
    if (wire.notified) wire.state = State::ending;
  }
}

void SimLoop::append(Wire& wire, const http::Response& response) {
  wire.state = !response.close && !wire.notified ? State::reading : State::ending;
  ++wire.timer;
  wire.out.push_back({.is_answer = true, .status = response.status, .bytes = std::string(response.body)});
  note_leaving(wire, response);
}

void SimLoop::note_leaving(Wire& wire, const http::Response& response) {
  wire.gate = std::max(wire.gate, response.gate);
  wire.receipts.insert(wire.receipts.end(), response.receipts.begin(), response.receipts.end());
}

void SimLoop::flush(Wire& wire) {
  if (wire.blocked) return;
  if (!wire.out.empty()) {
    wire.gated = wire.gate != 0 && !handler_->may_leave(wire.gate);
    if (wire.gated) {
      ++rare_["answers that waited for the disk"];
      return;
    }
    while (!wire.out.empty()) {
      if (wire.link->in_kernel > kKernelBuffer) return block(wire);
      Output output = std::move(wire.out.front());
      wire.out.pop_front();
      write(wire, std::move(output));
    }
    collect(wire, false);
    drained(wire);
  } else if (wire.full) {
    drained(wire);
  }
  if (wire.state == State::ending) {
    close_now(wire);
    tell_closed(wire, State::ending);
  }
}

void SimLoop::write(Wire& wire, Output output) {
  const LinkPtr link = wire.link;
  const uint64_t stamp = schedule_.next_stamp();
  if (output.is_answer) {
    ++link->answers;
    if (on_answer_left) on_answer_left(stamp);
  } else {
    wire.stream_bytes -= std::min(wire.stream_bytes, output.bytes.size());
    link->in_kernel += output.bytes.size();
  }
  schedule_.at(link->arrival(link->last_down), [link, stamp, output = std::move(output)] {
    if (output.is_answer) {
      if (link->remote != nullptr) link->remote->on_answer(output.status, output.bytes, stamp);
    } else if (!link->reads) {
      link->unread.emplace_back(output.bytes, stamp);
    } else {
      read_one(link, output.bytes, stamp);
    }
  });
}

void SimLoop::drained(Wire& wire) {
  wire.gate = 0;
  if (std::exchange(wire.full, false) && wire.state == State::streaming) handler_->on_drained(wire.link->id);
}

// The kernel takes no more; who does not read for long is cut off.
void SimLoop::block(Wire& wire) {
  wire.blocked = true;
  collect(wire, false);
  const Duration patience = wire.full ? limits_.full_stream_timeout : limits_.write_timeout;
  schedule_.after(patience, [this, gone = gone_, id = wire.link->id, before = wire.link->in_kernel] {
    if (*gone) return;
    Wire* const still = find(id);
    if (still == nullptr || !still->blocked || still->link->in_kernel < before) return;
    post([this, id] {
      Wire* const slow = find(id);
      if (slow == nullptr || !slow->blocked) return;
      ++rare_["slow readers cut off"];
      broken(*slow);
    });
  });
}

void SimLoop::collect(Wire& wire, bool lost) {
  for (http::Receipt& receipt : wire.receipts) {
    receipt.lost = lost;
    collected_.push_back(receipt);
  }
  wire.receipts.clear();
}

void SimLoop::schedule(Wire& wire) {
  if (std::exchange(wire.scheduled, true)) return;
  scheduled_.push_back(uint64_t(wire.link->id));
  want_turn();
}

void SimLoop::schedule_unless_handling(Wire& wire) {
  if (!wire.handling) schedule(wire);
}

bool SimLoop::answer(http::ConnectionId connection, const http::Response& response) {
  Wire* const wire = find(connection);
  if (wire == nullptr || wire->state != State::waiting) {
    ++rare_["answers whose connection had gone"];
    return false;
  }
  append(*wire, response);
  schedule_unless_handling(*wire);
  return true;
}

void SimLoop::set_timer(http::ConnectionId connection, Duration delay) {
  Wire* const wire = find(connection);
  if (wire == nullptr) return;
  schedule_.after(delay, [this, gone = gone_, connection, timer = ++wire->timer] {
    if (*gone) return;
    post([this, connection, timer] {
      Wire* const still = find(connection);
      if (still != nullptr && still->state == State::waiting && still->timer == timer)
        handler_->on_timer(connection);
    });
  });
}

void SimLoop::watch(http::ConnectionId connection) {
  if (Wire* const wire = find(connection)) wire->watched = true;
}

http::Streamed SimLoop::stream(http::ConnectionId connection,
                               const std::shared_ptr<const std::string>& bytes) {
  Wire* const wire = find(connection);
  if (wire == nullptr || wire->state != State::streaming) return http::Streamed::gone;
  if (wire->full ||
      (wire->stream_bytes > 0 && wire->stream_bytes + bytes->size() > limits_.max_stream_backlog)) {
    ++rare_["streams that were full"];
    wire->full = true;
    return http::Streamed::full;
  }
  wire->stream_bytes += bytes->size();
  wire->out.push_back({.is_answer = false, .status = 200, .bytes = *bytes});
  schedule(*wire);
  return http::Streamed::queued;
}

void SimLoop::tell_when_drained(http::ConnectionId connection) {
  Wire* const wire = find(connection);
  if (wire == nullptr || wire->state != State::streaming) return;
  wire->full = true;
  schedule_unless_handling(*wire);
}

void SimLoop::close(http::ConnectionId connection) {
  if (Wire* const wire = find(connection)) close_when_written(*wire);
}

void SimLoop::close_when_written(Wire& wire) {
  wire.notified = true;
  if (wire.state >= State::ending) return;
  if (wire.handling && wire.state == State::waiting) return;
  wire.state = State::ending;
  schedule_unless_handling(wire);
}

void SimLoop::open_gate(uint64_t gate) {
  for (auto& [id, wire] : wires_)
    if (wire->gated && wire->gate <= gate && wire->state != State::closed) {
      wire->gated = false;
      schedule(*wire);
    }
}

void SimLoop::drop_output() {
  for (auto& [id, wire] : wires_)
    if (wire->state != State::closed && !wire->out.empty()) broken(*wire);
}

void SimLoop::close_now(Wire& wire) {
  if (wire.state == State::closed) return;
  wire.state = State::closed;
  collect(wire, true);
  const LinkPtr link = wire.link;
  link->loop = nullptr;
  link->server_closed = schedule_.now();
  schedule_.at(link->arrival(link->last_down), [link] {
    if (Remote* const remote = std::exchange(link->remote, nullptr)) remote->on_closed();
  });
  want_turn();
}

void SimLoop::broken(Wire& wire) {
  const State before = wire.state;
  if (before == State::closed) return;
  close_now(wire);
  tell_closed(wire, before);
}

void SimLoop::tell_closed(Wire& wire, State before) {
  if (wire.notified || !(before == State::waiting || wire.link->is_stream || wire.watched)) return;
  wire.notified = true;
  handler_->on_closed(wire.link->id);
}

}  // namespace turnstile::sim
