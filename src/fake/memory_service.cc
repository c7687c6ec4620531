// Time, connections that break, and what calls and streams wait for.
#include "fake/memory_service.h"

#include <algorithm>
#include <utility>

#include "api/answer_writer.h"

namespace turnstile::fake {
namespace {

constexpr size_t kMostAtOnce = 1'000;
constexpr std::chrono::hours kLongestSleep{1};

EngineSettings engine_settings(const ServiceSettings& settings) {
  EngineSettings engine;
  engine.server_keeps_references = settings.server_keeps_references;
  engine.allow_multi_node_download = settings.allow_multi_node_download;
  engine.operations = default_operations(settings.update_requires_no_ref);
  return engine;
}

// A client's end of the wires.
class Connection : public client::Transport {
 public:
  explicit Connection(std::shared_ptr<MemoryService> service)
      : service_(std::move(service)), id_(service_->open_connection()) {}
  ~Connection() override { service_->close_connection(id_); }

  MemoryService::Outcome exchange(const client::Exchange& exchange) override {
    return service_->exchange(id_, exchange);
  }
  MemoryService::Outcome stream(const client::Exchange& exchange, const Bytes& bytes) override {
    return service_->stream(exchange, bytes);
  }

 private:
  const std::shared_ptr<MemoryService> service_;
  const uint64_t id_;
};

std::unexpected<client::TransportError> fault(client::Fault fault, bool maybe_sent, const char* message) {
  return std::unexpected(client::TransportError{fault, maybe_sent, message});
}

}  // namespace

std::shared_ptr<Service> make_service(const ServiceSettings& settings) {
  return std::make_shared<MemoryService>(settings);
}

std::shared_ptr<client::Transport> connect(const std::shared_ptr<Service>& service) {
  return std::make_shared<Connection>(std::static_pointer_cast<MemoryService>(service));
}

std::unexpected<client::TransportError> unreachable() {
  return fault(client::Fault::unreachable, false, "it was taken away");
}
std::unexpected<client::TransportError> broken() {
  return fault(client::Fault::broken, true, "it was taken away meanwhile");
}
std::unexpected<client::TransportError> stopped() { return fault(client::Fault::stopped, true, "stopped"); }
std::unexpected<client::TransportError> timed_out() {
  return fault(client::Fault::timed_out, true, "no answer in time");
}

MemoryService::MemoryService(const ServiceSettings& settings)
    : events_(kFirstEvent), engine_(engine_settings(settings), *this, Token::none) {}

// Under mutex_, as all calls of the engine are: nobody sees these events before the step's answer is made.
uint64_t MemoryService::commit(Effects& effects) {
  const StepId step = events_.append(effects.events, 0);
  (void)events_.answered(std::span(&step, 1));  // streams look for themselves
  return 0;
}

void MemoryService::move_to(Time time) {
  if (const Time from = now(); time > from) added_ += time - from;
}

size_t MemoryService::expire() {
  Effects effects;
  size_t all = 0;
  for (size_t some = kMostAtOnce; some == kMostAtOnce; all += some) {
    some = engine_.expire(now(), effects, kMostAtOnce,
                          [this](Effects& step) TS_NO_ANALYSIS { distribute(step); });
  }
  return all;
}

// From one deadline to the next, because what ends at one may set another.
void MemoryService::advance(std::chrono::milliseconds by) {
  const Locked lock(mutex_);
  const Time target = later(now(), by);
  for (Time due = engine_.next_deadline(); due <= target; due = engine_.next_deadline()) {
    move_to(due);
    if (expire() == 0) break;
  }
  move_to(target);
  expire();
  changed_.notify_all();
}

void MemoryService::set_reachable(bool reachable) {
  const Locked lock(mutex_);
  if (ended_) return;
  reachable_ = reachable;
  if (!reachable) break_all();
}

// The engine is left as it is: calls.cc looks there for those who wait.
void MemoryService::shut_down() {
  const Locked lock(mutex_);
  ended_ = true;
  reachable_ = false;
  std::erase_if(polls_, [](const auto& poll) { return !poll.second.answer; });  // the others are on their way
  streams_.clear();
  bonds_.clear();
  changed_.notify_all();
}

void MemoryService::break_all() {
  for (auto& [id, poll] : std::exchange(polls_, {})) {
    if (poll.answer) {
      polls_.emplace(id, std::move(poll));  // it is on its way
    } else {
      break_poll(id, poll.errand);
    }
  }
  for (const auto& [id, errand] : std::exchange(streams_, {})) close_bond(id, errand);
  for (const Bond& bond : std::exchange(bonds_, {})) close_bond(bond.connection, bond.errand);
  changed_.notify_all();
}

void MemoryService::break_poll(uint64_t poll, const Errand& errand) {
  Effects effects;
  engine_.break_poll(errand.lane(), errand.who(), PollId(poll), now(), effects);
  distribute(effects);
}

void MemoryService::note_bond(uint64_t connection, const LaneName& lane, const Requester& who) {
  for (const Bond& bond : bonds_) {
    if (bond.connection == connection && bond.errand.is(lane, who)) return;
  }
  bonds_.push_back({connection, Errand(lane, who)});
}

void MemoryService::close_bond(uint64_t bond, const Errand& errand) {
  if (errand.node.empty()) return;
  Effects effects;
  engine_.close_bond(errand.lane(), errand.who(), BondId(bond), now(), effects);
  distribute(effects);
}

uint64_t MemoryService::open_connection() {
  const Locked lock(mutex_);
  return ++last_id_;
}

void MemoryService::close_connection(uint64_t connection) {
  const Locked lock(mutex_);
  const auto theirs =
      std::ranges::partition(bonds_, [&](const Bond& bond) { return bond.connection != connection; });
  const std::vector<Bond> closed(theirs.begin(), theirs.end());
  bonds_.erase(theirs.begin(), theirs.end());
  for (const Bond& bond : closed) close_bond(connection, bond.errand);
}

void MemoryService::distribute(Effects& effects) {
  for (const Wake& wake : effects.wakes) {
    const auto poll = polls_.find(uint64_t(wake.poll));
    if (poll == polls_.end()) continue;
    client::Answer& answer = poll->second.answer.emplace();
    answer.status = int(append_lock_answer(answer.body, wake.answer, LaneName()));
  }
  changed_.notify_all();
}

void MemoryService::wait_for_change(Time until, Steady::time_point deadline) {
  const Duration left = std::min<Duration>(std::min(until, engine_.next_deadline()) - now(), kLongestSleep);
  changed_.wait_until(mutex_, std::min(deadline, Steady::now() + left));
  expire();
}

void MemoryService::wake() {
  const Locked lock(mutex_);
  changed_.notify_all();
}

}  // namespace turnstile::fake
