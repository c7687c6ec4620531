// The client of a Turnstile server: take a lock, learn how the work of others ended, keep the lock alive,
// release it.
//
//   auto client = turnstile::LockClient::create({.servers = {"http://127.0.0.1:8086"}, .node_id = "node-a"});
//   auto result = client->lock({.operation = "pull", .resource = "sha256:…"});
//   if (result && result->skipped()) return;                // another node has done it
//   if (result) { fetch(); result->hold.release(turnstile::WorkResult::succeeded()); }
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "turnstile/clock.h"
#include "turnstile/error.h"
#include "turnstile/export.h"
#include "turnstile/hold.h"
#include "turnstile/operations.h"
#include "turnstile/settings.h"
#include "turnstile/status.h"

namespace turnstile {
inline namespace v1 {

// Where a waiting lock() stands; for progress displays.
struct WaitingStatus {
  uint32_t position = 0;  // from 1
  std::string holder{};   // the node that holds it; empty: not known
  WallTime holder_since{};
  std::optional<uint64_t> done{}, total{};  // the holder's progress
};

struct LockRequest {
  std::string operation{};                  // the API's `type`
  std::string resource{};                   // the API's `resource_id`
  std::string request_id{};                 // empty: a new one; set: to come back to a place in the queue
  std::string node_id{};                    // empty: the client's
  std::optional<std::string> scope{};       // "operation" or "resource"; else the server's default
  std::chrono::milliseconds lease{10'000};  // renewed while the Hold lives; 0: none
  bool monitor =
      false;  // the hold also ends, within the server's grace, when this process' connection breaks
  bool dereference = false;     // for deletes: drop this node's own reference first (S19)
  std::string info{};           // free text for people
  bool stay_when_busy = false;  // try_lock and try_lock_all only: keep the place in the queue

  // lock() only: called on the calling thread when there is something new to tell, at most once a second.
  std::function<void(const WaitingStatus&)> on_waiting{};
};

// Which node has done the skipped work, as far as the server knows.
struct SkippedWork {
  std::string node_id{};                           // who did it; empty: not known
  std::optional<std::chrono::milliseconds> ago{};  // when
  std::string result{};                            // the text that it left (WorkResult::result)
};

enum class LockOutcome {
  acquired,  // the work is the caller's, and so is the hold
  skipped,   // another node has done the work
  queued,    // try_lock with stay_when_busy only
};

// Of a call that did not fail.
struct LockResult {
  LockOutcome outcome = LockOutcome::queued;
  Hold hold{};  // with acquired
  std::string request_id{};
  SkippedWork work{};                      // with skipped
  std::vector<std::string> references{};   // with a skipped delete: the nodes that still use the resource
  std::optional<WaitingStatus> waiting{};  // with queued

  bool acquired() const { return outcome == LockOutcome::acquired; }
  bool skipped() const { return outcome == LockOutcome::skipped; }
  bool queued() const { return outcome == LockOutcome::queued; }
};

// An open subscription. Destroying it ends it, and waits for a callback under way.
class TURNSTILE_API Subscription {
 public:
  class State;
  explicit Subscription(std::shared_ptr<State> state);
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;
  ~Subscription();

 private:
  std::shared_ptr<State> state_;
};

struct SubscribeRequest {
  std::string operation{}, resource{};  // both: a lane; both empty: everything
  std::string prefix{};                 // with both empty: only resources that begin with this
  std::string after{};                  // an Event::id to continue after
  std::string node_id{}, request_id{};  // set: the stream is a bond of this requester (S21)

  // Above 0: subscribe() returns when the stream is open, so that nothing that happens later is missed; or
  // with an error, after this time. 0: it returns at once.
  std::chrono::milliseconds open_within{0};
  std::function<void()> on_open{};  // called whenever it is open: at first, and again after it was broken
};

// Talks to one server, or to the leader of several.
//
// Every call carries a request id of its own, so that repeating it is safe: after time-outs, broken
// connections and 5xx answers it is sent again, up to max_retries times; of 4xx only 408 and 429. A lost
// answer costs no second queue entry, no second hold and no lost unlock. break_hold and forget name no
// requester, and would end the next one's work: they are not sent again once they may have been done.
//
// Threads: every member may be called by any number of threads. One thread of its own renews leases; each
// Subscription and each monitored Hold has one more.
//
// Life: Holds and Subscriptions may outlive the client that made them.
class TURNSTILE_API LockClient {
 public:
  using Clock = LeaseClock;
  class Core;

  // Checks the settings; connects only when the first call needs it.
  [[nodiscard]] static Expected<LockClient> create(ClientSettings settings);
  explicit LockClient(std::shared_ptr<Core> core);
  LockClient(LockClient&&) noexcept;
  LockClient& operator=(LockClient&&) noexcept;
  ~LockClient();

  const std::string& node_id() const;

  // Takes the lock, or learns that the work is done; waits its turn until `deadline` or until `stop` is used,
  // and then leaves the queue within a round trip.
  [[nodiscard]] Expected<LockResult> lock(const LockRequest& request,
                                          Clock::time_point deadline = Clock::time_point::max(),
                                          std::stop_token stop = {});
  // Does not wait: error `busy` when another holds it (or `queued`, with stay_when_busy). `deadline` and
  // `stop` are for a server that does not answer.
  [[nodiscard]] Expected<LockResult> try_lock(const LockRequest& request,
                                              Clock::time_point deadline = Clock::time_point::max(),
                                              std::stop_token stop = {});
  // try_lock for many at once, in one round trip: all layers of an image. Results in order.
  [[nodiscard]] Expected<std::vector<Expected<LockResult>>> try_lock_all(
      const std::vector<LockRequest>& requests);
  // Releases many at once, in one round trip, all with the same result. Results in order.
  [[nodiscard]] Expected<std::vector<Expected<Released>>> release_all(std::vector<Hold>& holds,
                                                                      const WorkResult& result);

  // Releases a hold of which no Hold object exists (another process took it). token 0: not known.
  [[nodiscard]] Expected<Released> unlock(const std::string& operation, const std::string& resource,
                                          const WorkResult& result, uint64_t token = 0,
                                          const std::string& request_id = {});
  [[nodiscard]] Expected<std::chrono::milliseconds> renew(const std::string& operation,
                                                          const std::string& resource, uint64_t token,
                                                          std::chrono::milliseconds lease,
                                                          const std::string& request_id = {});
  // Leaves the queue. False: was not in it.
  [[nodiscard]] Expected<bool> cancel(const std::string& operation, const std::string& resource,
                                      const std::string& request_id = {});

  [[nodiscard]] Expected<LaneStatus> status(const std::string& operation, const std::string& resource);
  [[nodiscard]] Expected<LanePage> list(const LaneFilter& filter = {});
  // Returns the node that held it. token: only this hold is ended; 0: whichever there is when the server
  // hears.
  [[nodiscard]] Expected<std::string> break_hold(const std::string& operation, const std::string& resource,
                                                 const std::string& reason, uint64_t token = 0);

  // The server forgets the lane's kept success or permanent failure, so that the work runs again. False:
  // nothing was kept.
  [[nodiscard]] Expected<bool> forget(const std::string& operation, const std::string& resource);

  [[nodiscard]] Expected<ReferenceStatus> references(const std::string& resource);
  [[nodiscard]] Expected<ReferenceStatus> add_reference(const std::string& resource);
  // Many at once, in one round trip for a thousand, without the nodes of each. Results in order.
  [[nodiscard]] Expected<std::vector<Expected<ReferenceStatus>>> add_references(
      const std::vector<std::string>& resources);
  [[nodiscard]] Expected<ReferenceStatus> release_reference(const std::string& resource);
  [[nodiscard]] Expected<uint32_t> release_node(const std::string& node_id);  // returns how many

  // Calls back for every event, in order, on a thread of its own. It reconnects by itself and continues where
  // it was; an Event `reset` says that some were missed. `on_end` gets an error that a retry cannot mend.
  [[nodiscard]] Expected<Subscription> subscribe(const SubscribeRequest& request,
                                                 std::function<void(const Event&)> on_event,
                                                 std::function<void(const ClientError&)> on_end = {});

  // The answer of `GET /version`, as JSON.
  [[nodiscard]] Expected<std::string> version(Clock::time_point deadline = Clock::time_point::max(),
                                              std::stop_token stop = {});

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace v1
}  // namespace turnstile
