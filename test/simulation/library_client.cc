#include "library_client.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "client/core.h"
#include "client/transport.h"
#include "fiber.h"
#include "turnstile/lock_client.h"

namespace turnstile::sim {
namespace {

using client::Steady;
using std::chrono::milliseconds;

Steady::time_point to_steady(Time time) { return Steady::time_point(time.time_since_epoch()); }
Time to_time(Steady::time_point time) {
  return time == Steady::time_point::max()
             ? kNever
             : Time(std::chrono::duration_cast<Duration>(time.time_since_epoch()));
}

// What the fiber of one client waits for, and being woken from it.
class Sleeper {
 public:
  explicit Sleeper(Schedule& schedule) : schedule_(schedule) {}
  Fiber* fiber = nullptr;

  // Until wake(), or until then.
  void wait_until(Time time) {
    const uint64_t number = ++number_;
    waits_ = true;
    if (time != kNever)
      schedule_.at(time, [this, number, alive = std::weak_ptr(alive_)] {
        if (!alive.expired() && waits_ && number == number_) wake();
      });
    fiber->wait();
  }
  void wake() {
    if (!waits_) return;
    waits_ = false;
    fiber->resume();
  }

 private:
  Schedule& schedule_;
  bool waits_ = false;
  uint64_t number_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

class SimTiming final : public client::Timing {
 public:
  SimTiming(Schedule& schedule, Sleeper& sleeper) : schedule_(schedule), sleeper_(sleeper) {}
  Steady::time_point now() const override { return to_steady(schedule_.now()); }
  bool sleep_until(Steady::time_point time, std::stop_token stop) const override {
    if (stop.stop_requested()) return false;
    if (to_time(time) > schedule_.now()) sleeper_.wait_until(to_time(time));
    return !stop.stop_requested();
  }

 private:
  Schedule& schedule_;
  Sleeper& sleeper_;
};

// One connection of the library's.
struct Wire final : Remote {
  explicit Wire(Sleeper& of) : sleeper(of) {}
  void on_answer(unsigned told, const std::string& text, uint64_t when) override {
    status = told;
    body = text;
    stamp = when;
    sleeper.wake();
  }
  void on_bytes(const std::string& more, uint64_t when) override {
    bytes += more;
    stamp = when;
    sleeper.wake();
  }
  void on_closed() override {
    closed = true;
    sleeper.wake();
  }

  Sleeper& sleeper;
  LinkPtr link;
  unsigned status = 0;  // 0: no answer yet
  std::string body, bytes;
  uint64_t stamp = 0;
  bool closed = false;
};

class SimTransport final : public client::Transport {
 public:
  SimTransport(Schedule& schedule, Sleeper& sleeper, History& history, LibraryClient::Connect connect)
      : schedule_(schedule), sleeper_(sleeper), history_(history), connect_(std::move(connect)) {}
  ~SimTransport() override {
    for (auto& [server, wire] : wires_) hang_up(wire);
  }

  std::expected<client::Answer, client::TransportError> exchange(const client::Exchange& exchange) override {
    std::unique_ptr<Wire>& wire = wires_[std::string(exchange.server)];
    if (wire && wire->closed) wire.reset();
    if (!wire && !open(wire, exchange.server)) return unreachable();
    wire->status = 0;
    const WireRequest request{.post = exchange.post,
                              .target = std::string(exchange.target),
                              .body = std::string(exchange.body),
                              .last_event_id = {}};
    const std::vector<Call*> calls = history_.begin(request, wire->link, schedule_.now());
    send(wire->link, request);
    const Time deadline = exchange.timeout.count() > 0 ? schedule_.now() + exchange.timeout : kNever;
    while (wire->status == 0 && !wire->closed && schedule_.now() < deadline) sleeper_.wait_until(deadline);
    if (wire->status != 0) {
      history_.end(calls, wire->status, wire->body, wire->stamp, schedule_.now());
      return client::Answer{.status = int(wire->status), .body = wire->body};
    }
    const bool closed = wire->closed;
    hang_up(wire);
    return std::unexpected(client::TransportError{closed ? client::Fault::broken : client::Fault::timed_out,
                                                  true, closed ? "connection reset" : "timed out"});
  }

  std::expected<client::Answer, client::TransportError> stream(const client::Exchange& exchange,
                                                               const Bytes& bytes) override {
    std::unique_ptr<Wire> wire;
    if (!open(wire, exchange.server)) return unreachable();
    send(wire->link, {.post = false,
                      .target = std::string(exchange.target),
                      .body = {},
                      .last_event_id = std::string(exchange.last_event_id)});
    SeenStream& seen = history_.streams.emplace_back();
    seen.type = query_field(exchange.target, "type");
    seen.resource = query_field(exchange.target, "resource_id");
    seen.node = query_field(exchange.target, "node_id");
    seen.request = query_field(exchange.target, "request_id");
    seen.link = wire->link;
    seen.opened = schedule_.now();
    const Time deadline = exchange.timeout.count() > 0 ? schedule_.now() + exchange.timeout : kNever;
    std::expected<client::Answer, client::TransportError> result = client::Answer{.status = 200};
    Time heard = schedule_.now();
    for (bool goes_on = true; goes_on;) {
      const Time patience = exchange.silence.count() > 0 ? heard + exchange.silence : kNever;
      if (wire->bytes.empty() && wire->status == 0 && !wire->closed)
        sleeper_.wait_until(std::min(deadline, patience));
      if (wire->status != 0) {
        result = client::Answer{.status = int(wire->status), .body = wire->body};
        goes_on = false;
      } else if (!wire->bytes.empty()) {
        const std::string part = std::exchange(wire->bytes, {});
        heard = schedule_.now();
        History::read(seen, part, wire->stamp, heard);
        goes_on = bytes(part);
      } else if (wire->closed) {
        result = std::unexpected(client::TransportError{client::Fault::broken, true, "connection reset"});
        goes_on = false;
      } else if (schedule_.now() >= std::min(deadline, patience)) {
        result = std::unexpected(client::TransportError{client::Fault::timed_out, true, "timed out"});
        goes_on = false;
      }
    }
    hang_up(wire);
    return result;
  }

 private:
  bool open(std::unique_ptr<Wire>& wire, std::string_view server) {
    wire = std::make_unique<Wire>(sleeper_);
    wire->link = connect_(*wire, server);
    if (wire->link) return true;
    wire.reset();
    sleeper_.wait_until(schedule_.now() + Duration(schedule_.random.between(50, 500)));
    return false;
  }
  void hang_up(std::unique_ptr<Wire>& wire) {
    if (wire && wire->link) close_by_client(wire->link, false);
    wire.reset();
  }
  static std::unexpected<client::TransportError> unreachable() {
    return std::unexpected(client::TransportError{client::Fault::unreachable, false, "connection refused"});
  }

  Schedule& schedule_;
  Sleeper& sleeper_;
  History& history_;
  const LibraryClient::Connect connect_;
  std::map<std::string, std::unique_ptr<Wire>> wires_;  // by server
};

}  // namespace

struct LibraryClient::Inside {
  LibraryWork work;
  Schedule& schedule;
  Sleeper sleeper;
  std::shared_ptr<SimTransport> transport;
  std::unique_ptr<Fiber> fiber;
  std::vector<std::string> violations;
  std::string outcome;

  Inside(const LibraryWork& of, Schedule& in) : work(of), schedule(in), sleeper(in) {}

  void run(unsigned number) {
    ClientSettings settings;
    settings.node_id = work.node;
    settings.servers = work.servers;
    settings.request_timeout = milliseconds(700);
    settings.max_retries = 3;
    settings.long_poll = milliseconds(1500);
    settings.status_interval = milliseconds(150);
    settings.wait_by =
        std::vector{WaitBy::long_poll, WaitBy::stream, WaitBy::status_poll, WaitBy::automatic}[work.way];
    auto core = std::make_shared<LockClient::Core>(
        settings, transport,
        client::CoreOptions{.timing = std::make_shared<SimTiming>(schedule, sleeper),
                            .keeper_thread = false});
    LockClient client(core);
    LockRequest request{.operation = work.type,
                        .resource = work.resource,
                        .request_id = "lib" + std::to_string(number),
                        .lease = std::chrono::duration_cast<milliseconds>(work.lease)};
    if (!work.scope.empty()) request.scope = work.scope;
    const Time deadline = schedule.now() + work.patience;
    Expected<LockResult> result = client.lock(request, to_steady(deadline));
    // Leaving takes a few tries of a second each, or as long as another server may need to lead.
    const Duration leaving = work.servers.size() > 1 ? settings.hand_over : milliseconds(0);
    if (schedule.now() > deadline + leaving + std::chrono::seconds(8))
      violations.push_back(fmt::format("lock() of {} returned long after its deadline", work.node));
    // A hand-over is no error while there is time.
    if (!result && schedule.now() < deadline && result.error().message.find(" leads") != std::string::npos)
      violations.push_back(fmt::format("lock() of {} gave up {} ms before its deadline: {}", work.node,
                                       to_ms(deadline - schedule.now()), result.error().message));
    outcome = !result              ? std::string("error ") + result.error().message
              : result->acquired() ? "acquired"
                                   : "skipped";
    if (!result || !result->acquired()) return;
    const Steady::time_point done = to_steady(schedule.now() + work.work);
    while (core->timing().now() < done) {
      const Steady::time_point next = core->keeper().step();
      core->timing().sleep_until(std::max(std::min(next, done), core->timing().now() + milliseconds(1)), {});
    }
    (void)result->hold.release(work.how == 0   ? WorkResult::succeeded()
                               : work.how == 1 ? WorkResult::failed("simulated")
                                               : WorkResult::failed_for_all("simulated, for good"));
  }
};

LibraryClient::LibraryClient(const LibraryWork& work, Schedule& schedule, History& history, Connect connect)
    : inside_(std::make_unique<Inside>(work, schedule)) {
  Inside* const inside = inside_.get();
  inside->transport = std::make_shared<SimTransport>(schedule, inside->sleeper, history, std::move(connect));
  const unsigned number = unsigned(history.calls.size());
  inside->fiber = std::make_unique<Fiber>([inside, number] { inside->run(number); });
  inside->sleeper.fiber = inside->fiber.get();
  inside->fiber->resume();
}

LibraryClient::~LibraryClient() {
  // One that never ends is a violation that was told; its stack cannot be given back.
  if (!inside_->fiber->finished()) (void)inside_.release();
}

bool LibraryClient::finished() const { return inside_->fiber->finished(); }
const std::vector<std::string>& LibraryClient::violations() const { return inside_->violations; }
const std::string& LibraryClient::outcome() const { return inside_->outcome; }

}  // namespace turnstile::sim
