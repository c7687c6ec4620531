#include "client/hold_state.h"

#include <utility>

namespace turnstile {

using client::Keeper;
using client::Progress;
using client::Unlocked;

namespace {
constexpr std::chrono::seconds kProgressEvery{1};
}

Hold::State::State(Granted granted, std::shared_ptr<client::Caller> caller, std::shared_ptr<Keeper> keeper)
    : granted_(std::move(granted)),
      caller_(std::move(caller)),
      keeper_(std::move(keeper)),
      lease_(granted_.lease, granted_.sent_at,
             caller_->has_several() ? client::Lease::kShareOfSeveral : client::Lease::kShare),
      last_progress_(granted_.sent_at) {}

std::shared_ptr<Keeper> Hold::State::keeper() const {
  const Locked lock(mutex_);
  return keeper_;
}

HoldState Hold::State::state_at(Clock::time_point now) const {
  if (outcome_ && *outcome_) return HoldState::released;
  return lost_ ? HoldState::lost : lease_.state_at(now);
}

HoldState Hold::State::state() const {
  const Locked lock(mutex_);
  return state_at(now());
}

Hold::Clock::time_point Hold::State::believed_until() const {
  const Locked lock(mutex_);
  return lease_.believed_until();
}

void Hold::State::report_progress(uint64_t done, uint64_t total) {
  std::shared_ptr<Keeper> keeper;
  Clock::time_point due;
  {
    const Locked lock(mutex_);
    if (ended_ || !keeper_) return;
    progress_ = Progress{.done = done, .total = total};
    keeper = keeper_;
    due = renewal_time();
  }
  (void)keeper->add(shared_from_this());  // one without a lease is not yet known to it
  keeper->wake_by(due);
}

Expected<void> Hold::State::renew() {
  std::optional<Progress> progress;
  {
    const Locked lock(mutex_);
    progress = std::exchange(progress_, std::nullopt);
    if (progress) last_progress_ = now();
  }
  const auto reply =
      caller_->call({.target = "/renew",
                     .body = client::renew_body(granted_.who, granted_.token, granted_.lease, progress)});
  const Expected<std::chrono::milliseconds> lease = client::read_reply(reply, client::read_renew);
  if (lease) {
    renewed(reply->sent_at, *lease);
  } else if (lease.error().code == ErrorCode::lost) {
    lost();
  }
  if (const auto keeper = this->keeper()) tell_by(*keeper);
  if (!lease) return std::unexpected(lease.error());
  return {};
}

void Hold::State::on_change(std::function<void(HoldState)> callback) {
  std::shared_ptr<Keeper> keeper;
  {
    const Locked lock(mutex_);
    callback_ = std::move(callback);
    told_ = HoldState::held;
    keeper = keeper_;
  }
  if (!keeper) return;
  (void)keeper->add(shared_from_this());
  tell_by(*keeper);
}

// Its thread tells of a change, if there is one.
void Hold::State::tell_by(Keeper& keeper) const {
  const Clock::time_point at = now();
  state() == HoldState::held ? keeper.wake_by(at) : keeper.tell_now(at);
}

void Hold::State::keep_bond(Subscription bond) {
  const Locked lock(mutex_);
  bond_.emplace(std::move(bond));
}

std::optional<Expected<Released>> Hold::State::begin_release(const WorkResult& result) {
  const Locked lock(mutex_);
  while (releasing_) changed_.wait(mutex_);
  if (outcome_) return outcome_;
  if (!result_) result_ = result;
  ended_ = releasing_ = true;
  if (keeper_) keeper_->remove(this);
  return std::nullopt;
}

Hold::State::Attempt Hold::State::attempt_to_release() const {
  const Locked lock(mutex_);
  return {.result = *result_, .maybe_done = maybe_done_};
}

Expected<Released> Hold::State::finish_release(Unlocked outcome) {
  std::optional<Subscription> bond;  // ends below, without the lock: that waits for its thread
  std::shared_ptr<Keeper> keeper;    // of a hold that goes on
  {
    const Locked lock(mutex_);
    releasing_ = false;
    maybe_done_ |= outcome.maybe_done;
    // What is not known to have been done may be tried again; the rest is final (D5).
    if (outcome.released || outcome.released.error().code == ErrorCode::lost) {
      outcome_ = outcome.released;
      if (!outcome.released) lost_ = true;
      bond.swap(bond_);
    } else if (outcome.released.error().code == ErrorCode::invalid) {
      // The server takes no such result: the hold goes on as if nobody had asked, until there is another one.
      // A try whose answer was lost had the same one, and was refused, too; should that server have had other
      // limits, the next release finds no hold, and maybe_done_ says why.
      result_.reset();
      ended_ = false;
      keeper = keeper_;
    }
    changed_.notify_all();
  }
  if (keeper) (void)keeper->add(shared_from_this());
  return std::move(outcome.released);
}

Expected<Released> Hold::State::release(const WorkResult& result, client::Patience patience) {
  if (auto earlier = begin_release(result)) return std::move(*earlier);
  const Attempt attempt = attempt_to_release();
  return finish_release(client::unlock(*caller_, granted_.who, granted_.token, attempt.result,
                                       attempt.maybe_done, std::move(patience)));
}

void Hold::State::close() {
  (void)release(WorkResult::failed("abandoned by its holder"), client::kShortPatience);
  let_go();
}

void Hold::State::detach() {
  {
    const Locked lock(mutex_);
    while (releasing_) changed_.wait(mutex_);
    ended_ = true;
  }
  let_go();
}

// Cuts the ways to the keeper, the bond and the callback.
void Hold::State::let_go() {
  std::shared_ptr<Keeper> keeper;
  std::optional<Subscription> bond;
  {
    const Locked lock(mutex_);
    keeper.swap(keeper_);
    bond.swap(bond_);
    while (telling_ != std::thread::id() && telling_ != std::this_thread::get_id()) changed_.wait(mutex_);
    callback_ = nullptr;
  }
  if (keeper) keeper->remove(this);
}

Hold::Clock::time_point Hold::State::renewal_time() const {
  if (ended_ || lost_) return client::Lease::kNever;
  Clock::time_point time = lease_.renew_at();
  if (progress_) time = std::min(time, last_progress_ + kProgressEvery);
  return std::max(time, not_before_);
}

Hold::Clock::time_point Hold::State::next_renewal() const {
  const Locked lock(mutex_);
  return renewal_time();
}

std::optional<Hold::State::Renewal> Hold::State::renewal_due(Clock::time_point now) {
  const Locked lock(mutex_);
  if (renewal_time() > now) return std::nullopt;
  Renewal renewal{.state = shared_from_this(), .progress = std::nullopt};
  if (progress_ && now >= last_progress_ + kProgressEvery) {  // a short lease is renewed more often than that
    last_progress_ = now;
    renewal.progress = std::exchange(progress_, std::nullopt);
  }
  return renewal;
}

void Hold::State::renewed(Clock::time_point sent_at, std::chrono::milliseconds lease) {
  const Locked lock(mutex_);
  lease_.confirm(sent_at, lease);
  not_before_ = {};
}

void Hold::State::lost() {
  const Locked lock(mutex_);
  // After a release was begun the server rightly knows no such hold.
  if (!ended_) lost_ = true;
}

void Hold::State::not_renewed(Clock::time_point try_again_at, const std::optional<Progress>& progress) {
  const Locked lock(mutex_);
  not_before_ = try_again_at;
  if (!progress_) progress_ = progress;
}

// When its state will change by itself; for callbacks.
Hold::Clock::time_point Hold::State::next_change(Clock::time_point now) const {
  const Locked lock(mutex_);
  if (ended_ || lost_) return client::Lease::kNever;
  for (const auto time : {lease_.in_danger_at(), lease_.believed_until()}) {
    if (time > now) return time;
  }
  return client::Lease::kNever;
}

Hold::Clock::duration Hold::State::margin() const {
  const Locked lock(mutex_);
  return lease_.margin();
}

void Hold::State::tell_changes(Clock::time_point now) {
  std::function<void(HoldState)> callback;
  HoldState state;
  {
    const Locked lock(mutex_);
    state = state_at(now);
    if (!callback_ || ended_ || state == told_ || !keeper_) return;
    told_ = state;
    callback = callback_;
    telling_ = std::this_thread::get_id();
  }
  try {
    callback(state);
  } catch (...) {
    callback = nullptr;  // the caller's own; there is nobody here to tell
  }
  callback = nullptr;
  const Locked lock(mutex_);
  telling_ = {};
  changed_.notify_all();
}

}  // namespace turnstile
