// What a Hold knows, shared by its owner's threads and the keeper's.
#pragma once

#include <condition_variable>
#include <memory>
#include <optional>
#include <thread>

#include "base/sync.h"
#include "client/caller.h"
#include "client/keeper.h"
#include "client/lease.h"
#include "client/requests.h"
#include "client/unlocking.h"
#include "turnstile/hold.h"
#include "turnstile/lock_client.h"

namespace turnstile {

// Threads: any; the keeper's thread is the only one that calls back.
// Life: close() is called by the Hold's destructor. It cuts the way to the keeper, so that the last reference
// to the keeper is never dropped by the keeper's own thread.
class Hold::State : public std::enable_shared_from_this<Hold::State> {
 public:
  struct Granted {
    client::Requester who;
    uint64_t token = 0;
    uint32_t attempt = 1;
    std::string previous_error;
    std::chrono::milliseconds lease{0};
    Clock::time_point sent_at;
  };

  State(Granted granted, std::shared_ptr<client::Caller> caller, std::shared_ptr<client::Keeper> keeper);

  const Granted& granted() const { return granted_; }
  HoldState state() const;
  Clock::time_point believed_until() const;
  void report_progress(uint64_t done, uint64_t total);
  Expected<void> renew();
  void on_change(std::function<void(HoldState)> callback);
  Expected<Released> release(const WorkResult& result, client::Patience patience = {});
  void close();
  void detach();
  // The bond of a hold with `monitor`: kept until the hold is released.
  void keep_bond(Subscription bond);

  // The two halves of a release, for one that is part of a batch. begin: nullopt means go on (and then
  // finish must be called); a value is what an earlier one came to.
  std::optional<Expected<Released>> begin_release(const WorkResult& result);
  struct Attempt {
    WorkResult result;
    bool maybe_done = false;
  };
  Attempt attempt_to_release() const;
  Expected<Released> finish_release(client::Unlocked outcome);

  // The keeper's side. What to send now, if it is time; then one of the three below.
  struct Renewal {
    std::shared_ptr<State> state;
    std::optional<client::Progress> progress;
  };
  std::optional<Renewal> renewal_due(Clock::time_point now);
  void renewed(Clock::time_point sent_at, std::chrono::milliseconds lease);
  void lost();
  void not_renewed(Clock::time_point try_again_at, const std::optional<client::Progress>& progress);
  void tell_changes(Clock::time_point now);
  Clock::time_point next_renewal() const;
  Clock::time_point next_change(Clock::time_point now) const;
  Clock::time_point next_change() const { return next_change(now()); }
  Clock::duration margin() const;

 private:
  void let_go();
  HoldState state_at(Clock::time_point now) const TS_REQUIRES(mutex_);
  Clock::time_point renewal_time() const TS_REQUIRES(mutex_);
  std::shared_ptr<client::Keeper> keeper() const;
  void tell_by(client::Keeper& keeper) const;
  Clock::time_point now() const { return caller_->timing().now(); }

  const Granted granted_;
  const std::shared_ptr<client::Caller> caller_;

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<client::Keeper> keeper_ TS_GUARDED_BY(mutex_);  // empty: closed
  client::Lease lease_ TS_GUARDED_BY(mutex_);
  bool lost_ TS_GUARDED_BY(mutex_) = false;                         // the server said so
  std::optional<client::Progress> progress_ TS_GUARDED_BY(mutex_);  // not yet sent
  Clock::time_point last_progress_ TS_GUARDED_BY(mutex_);           // when some was sent
  Clock::time_point not_before_ TS_GUARDED_BY(mutex_){};            // after a renewal that failed
  std::function<void(HoldState)> callback_ TS_GUARDED_BY(mutex_);
  HoldState told_ TS_GUARDED_BY(mutex_) = HoldState::held;
  std::thread::id telling_ TS_GUARDED_BY(mutex_);
  std::optional<Subscription> bond_ TS_GUARDED_BY(mutex_);

  bool releasing_ TS_GUARDED_BY(mutex_) = false;
  bool ended_ TS_GUARDED_BY(mutex_) = false;  // by us: a release was begun
  // Of the first release: later ones repeat it (D7), unless the server would have none of it.
  std::optional<WorkResult> result_ TS_GUARDED_BY(mutex_);
  bool maybe_done_ TS_GUARDED_BY(mutex_) = false;
  std::optional<Expected<Released>> outcome_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
