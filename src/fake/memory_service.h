// The half of the fake that is a server: the real engine, the real JSON and the real event log, asked by
// function calls.
#pragma once

#include <condition_variable>
#include <expected>
#include <map>
#include <string>
#include <vector>

#include "api/command.h"
#include "api/error.h"
#include "api/paths.h"
#include "base/clock.h"
#include "base/sync.h"
#include "engine/engine.h"
#include "events/event_log.h"
#include "fake/service.h"
#include "service/errand.h"

namespace turnstile::fake {

// Does what turnstiled does between its sockets and its engine, for one call at a time.
//
// Not its job: speed, durability, metrics, limits on streams. Time: a clock's, plus what advance() added; it
// has no thread of its own, so what has run out is ended by whoever comes next or waits here. Threads: any;
// one mutex around everything, given back only while a call waits or a stream's reader works.
// Invariant: a poll or stream that is not in its table any more has been broken from here.
class MemoryService : public Service, private CommitSink {
 public:
  using Outcome = std::expected<client::Answer, client::TransportError>;
  using Steady = std::chrono::steady_clock;

  explicit MemoryService(const ServiceSettings& settings);

  void advance(std::chrono::milliseconds by) override TS_EXCLUDES(mutex_);
  void set_reachable(bool reachable) override TS_EXCLUDES(mutex_);
  void shut_down() override TS_EXCLUDES(mutex_);

  // `connection`: by which its bonds are known.
  uint64_t open_connection() TS_EXCLUDES(mutex_);
  void close_connection(uint64_t connection) TS_EXCLUDES(mutex_);
  Outcome exchange(uint64_t connection, const client::Exchange& exchange) TS_EXCLUDES(mutex_);
  Outcome stream(const client::Exchange& exchange, const client::Transport::Bytes& bytes) TS_EXCLUDES(mutex_);

 private:
  struct Call;    // one exchange (calls.cc)
  struct Stream;  // one event stream (streams.cc)
  struct OpenPoll {
    Errand errand;
    std::optional<client::Answer> answer;  // set by a Wake
  };
  struct Bond {
    uint64_t connection;
    Errand errand;
  };

  // calls.cc
  bool waits(Call& call) TS_REQUIRES(mutex_);
  Outcome carry_out(Call& call, Path path) TS_REQUIRES(mutex_);
  client::Answer one_step(Call& call, const Command& command) TS_REQUIRES(mutex_);
  // `request` is what `command` holds.
  Outcome lock(Call& call, LockRequest& request, const Command& command) TS_REQUIRES(mutex_);
  Outcome await_turn(Call& call, uint64_t poll, Time until) TS_REQUIRES(mutex_);
  client::Answer batch(Call& call, size_t count) TS_REQUIRES(mutex_);
  client::Answer list(Call& call, const ListCommand& command) TS_REQUIRES(mutex_);
  client::Answer release_node(Call& call, const ReleaseNodeCommand& command) TS_REQUIRES(mutex_);
  // streams.cc
  std::optional<ApiError> open_stream(Stream& stream, Path path, std::string_view query) TS_REQUIRES(mutex_);
  // What is to be told next; or why nothing will be.
  std::expected<std::string, client::TransportError> next_bytes(Stream& stream) TS_EXCLUDES(mutex_);
  void close_stream(Stream& stream) TS_EXCLUDES(mutex_);
  // memory_service.cc
  Time now() const TS_REQUIRES(mutex_) { return clock_.now() + added_; }
  void move_to(Time time) TS_REQUIRES(mutex_);
  size_t expire() TS_REQUIRES(mutex_);
  // What a step has caused besides its answer.
  void distribute(Effects& effects) TS_REQUIRES(mutex_);
  // Waits until something may be different: at most until `until` of this server's time, and `deadline`.
  void wait_for_change(Time until, Steady::time_point deadline) TS_REQUIRES(mutex_);
  void break_all() TS_REQUIRES(mutex_);
  void break_poll(uint64_t poll, const Errand& errand) TS_REQUIRES(mutex_);
  void note_bond(uint64_t connection, const LaneName& lane, const Requester& who) TS_REQUIRES(mutex_);
  void close_bond(uint64_t bond, const Errand& errand) TS_REQUIRES(mutex_);
  // Wakes this service's waiting calls, from a stop token.
  void wake() TS_EXCLUDES(mutex_);

  uint64_t commit(Effects& effects) override;
  uint64_t latest() const override { return 0; }
  bool wants_records() const override { return false; }

  const Clock clock_;
  EventLog events_;  // has a mutex of its own

  Mutex mutex_;
  std::condition_variable_any changed_;
  Engine engine_ TS_GUARDED_BY(mutex_);
  Duration added_ TS_GUARDED_BY(mutex_){};
  bool reachable_ TS_GUARDED_BY(mutex_) = true;
  bool ended_ TS_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ TS_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, OpenPoll> polls_ TS_GUARDED_BY(mutex_);
  std::map<uint64_t, Errand> streams_ TS_GUARDED_BY(mutex_);  // without a node: no bond
  std::vector<Bond> bonds_ TS_GUARDED_BY(mutex_);
};

// Ids of events begin here. Not 1: id 0 must be unknown, so that it is answered by a reset.
inline constexpr uint64_t kFirstEvent = 1'000;

// {"error":"...","code":"..."} as an answer.
client::Answer error_answer(const ApiError& error);
// Why there is none.
std::unexpected<client::TransportError> unreachable();
std::unexpected<client::TransportError> broken();
std::unexpected<client::TransportError> stopped();
std::unexpected<client::TransportError> timed_out();

}  // namespace turnstile::fake
