#include "client/keeper.h"

#include <condition_variable>
#include <unordered_map>
#include <vector>

#include "client/hold_state.h"

namespace turnstile::client {

// All but the thread itself, which holds a reference: whoever drops the Keeper, it does not pull the ground
// from under the thread.
class Keeper::Shared {
 public:
  explicit Shared(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  bool add(const std::shared_ptr<Hold::State>& state);
  void remove(const Hold::State* state);
  void wake_by(Steady::time_point time);
  void interrupt_if_late_for(Steady::time_point time);
  Steady::time_point step();
  void run();
  void end();

 private:
  using Renewals = std::vector<Hold::State::Renewal>;
  using Holds = std::vector<std::shared_ptr<Hold::State>>;

  Holds holds();
  struct Time {
    Milliseconds all;    // for all tries of one renewal
    Milliseconds a_try;  // for one of them
  };
  Time time_for(const Holds& all, Steady::time_point now);
  void send(const Renewals& due, const Time& time);
  void send_one(const Hold::State::Renewal& renewal, Call call);
  void send_batch(const Renewals& due, const Call& call);
  void failed(const Renewals& due, const ClientError& error);

  const std::shared_ptr<Caller> caller_;
  int failures_ = 0;  // of the last renewals, in a row; the stepping thread's

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::unordered_map<const Hold::State*, std::weak_ptr<Hold::State>> states_ TS_GUARDED_BY(mutex_);
  Steady::time_point wake_at_ TS_GUARDED_BY(mutex_) = Steady::time_point::max();
  bool ended_ TS_GUARDED_BY(mutex_) = false;
  std::stop_source interrupt_ TS_GUARDED_BY(mutex_);  // of the try in flight
  Steady::time_point try_until_ TS_GUARDED_BY(mutex_) = Steady::time_point::min();
  // How long the next try may take at the most: not longer than what the last one was interrupted for would
  // have waited. So another of that kind does not interrupt it, too, and renewals get through at any rate.
  Steady::duration longest_try_ TS_GUARDED_BY(mutex_) = Steady::duration::max();
};

// False: it was there.
bool Keeper::Shared::add(const std::shared_ptr<Hold::State>& state) {
  const Locked lock(mutex_);
  std::weak_ptr<Hold::State>& place = states_[state.get()];
  const bool is_new = place.expired();  // also one that was at the same address, and is gone
  place = state;
  return is_new;
}

void Keeper::Shared::remove(const Hold::State* state) {
  const Locked lock(mutex_);
  states_.erase(state);
}

void Keeper::Shared::wake_by(Steady::time_point time) {
  const Locked lock(mutex_);
  if (time >= wake_at_) return;
  wake_at_ = time;
  changed_.notify_all();
}

void Keeper::Shared::interrupt_if_late_for(Steady::time_point time) {
  const Locked lock(mutex_);
  if (time >= try_until_) return;
  longest_try_ = std::min(longest_try_, std::max(time - caller_->timing().now(), Steady::duration(0)));
  interrupt_.request_stop();
}

void Keeper::Shared::end() {
  const Locked lock(mutex_);
  ended_ = true;
  interrupt_.request_stop();
  changed_.notify_all();
}

Keeper::Shared::Holds Keeper::Shared::holds() {
  const Locked lock(mutex_);
  Holds all;
  all.reserve(states_.size());
  // One that was added while it was let go (a release that was refused, progress) is still there when it is
  // gone.
  std::erase_if(states_, [&](const auto& entry) {
    auto alive = entry.second.lock();
    if (!alive) return true;
    all.push_back(std::move(alive));
    return false;
  });
  return all;
}

Steady::time_point Keeper::Shared::step() {
  const Timing& timing = caller_->timing();
  const Holds all = holds();
  Renewals due;
  const Steady::time_point now = timing.now();
  for (const auto& state : all) {
    state->tell_changes(now);
    if (auto renewal = state->renewal_due(now)) due.push_back(std::move(*renewal));
  }
  if (!due.empty()) send(due, time_for(all, now));
  const Steady::time_point after = timing.now();
  Steady::time_point next = Steady::time_point::max();
  for (const auto& state : all) {
    state->tell_changes(after);
    next = std::min({next, state->next_renewal(), state->next_change(after)});
  }
  return next;
}

// Until the next change of any hold, so that its owner is told in time; but half of a margin at least, for
// otherwise many holds would leave no time for any try. Where there are several servers, one that hangs must
// not use up the time of the others.
Keeper::Shared::Time Keeper::Shared::time_for(const Holds& all, Steady::time_point now) {
  Steady::duration limit = caller_->settings().request_timeout;
  Steady::duration least = limit, margin = limit;
  for (const auto& state : all) {
    limit = std::min(limit, state->next_change(now) - now);
    least = std::min(least, state->margin() / 2);
    margin = std::min(margin, state->margin());
  }
  {
    const Locked lock(mutex_);
    limit = std::min(limit, std::exchange(longest_try_, Steady::duration::max()));
  }
  limit = std::max(limit, least);
  const Steady::duration a_try = caller_->has_several() ? std::min(limit, margin) : limit;
  return {std::chrono::ceil<Milliseconds>(limit), std::chrono::ceil<Milliseconds>(a_try)};
}

void Keeper::Shared::send(const Renewals& due, const Time& time) {
  const Steady::time_point until = caller_->timing().now() + time.all;
  Call call{.timeout = time.a_try, .retries = 0, .over_hand_over = false, .deadline = until};
  {
    const Locked lock(mutex_);
    if (ended_) return;
    interrupt_ = std::stop_source();
    call.stop = interrupt_.get_token();
    try_until_ = until;
  }
  due.size() == 1 ? send_one(due.front(), std::move(call)) : send_batch(due, call);
  const Locked lock(mutex_);
  try_until_ = Steady::time_point::min();
}

void Keeper::Shared::failed(const Renewals& due, const ClientError& error) {
  // Interrupted by ourselves: that says nothing about the server.
  const Milliseconds pause =
      error.code == ErrorCode::cancelled ? Milliseconds(0) : caller_->pause_after(++failures_);
  const Steady::time_point again = caller_->timing().now() + pause;
  for (const auto& renewal : due) {
    // Soon enough that one more try fits before the hold is lost.
    renewal.state->not_renewed(std::min(again, later(caller_->timing().now(), renewal.state->margin())),
                               renewal.progress);
  }
}

void Keeper::Shared::send_one(const Hold::State::Renewal& renewal, Call call) {
  const Hold::State::Granted& granted = renewal.state->granted();
  call.target = "/renew";
  call.body = renew_body(granted.who, granted.token, granted.lease, renewal.progress);
  const auto reply = caller_->call(call);
  if (const Expected<Milliseconds> lease = read_reply(reply, read_renew)) {
    failures_ = 0;
    renewal.state->renewed(reply->sent_at, *lease);
  } else if (lease.error().code == ErrorCode::lost) {
    renewal.state->lost();
  } else {
    failed({renewal}, lease.error());
  }
}

void Keeper::Shared::send_batch(const Renewals& due, const Call& call) {
  BatchBodies bodies;
  for (const auto& renewal : due) {
    const Hold::State::Granted& granted = renewal.state->granted();
    bodies.add(renew_body(granted.who, granted.token, granted.lease, renewal.progress, "renew"));
  }
  auto next = due.begin();
  for (BatchBodies::Body& body : bodies.take()) {
    const Renewals part(next, next + ptrdiff_t(body.count));
    next += ptrdiff_t(body.count);
    Call one = call;
    one.target = "/batch";
    one.body = std::move(body.text);
    const auto reply = caller_->call(one);
    const auto answers = read_reply(reply, read_renew_batch);
    if (!answers || answers->size() != part.size()) {
      failed(part, answers ? not_turnstile(reply->server, 200) : answers.error());
      continue;
    }
    failures_ = 0;
    for (size_t i = 0; i < part.size(); ++i) {
      const auto& answer = (*answers)[i];
      if (answer.answer) {
        part[i].state->renewed(reply->sent_at, *answer.answer);
        continue;
      }
      const ClientError error = error_of(answer.status, answer.refusal);
      error.code == ErrorCode::lost ? part[i].state->lost() : failed({part[i]}, error);
    }
  }
}

void Keeper::Shared::run() {
  for (;;) {
    const Steady::time_point next = step();
    const Locked lock(mutex_);
    // Whoever was added during the step has said by wake_by when it is due.
    wake_at_ = std::min(wake_at_, next);
    while (!ended_ && caller_->timing().now() < wake_at_) {
      if (wake_at_ == Steady::time_point::max()) {
        changed_.wait(mutex_);
      } else {
        // Woken now and then, for a wait stands still while the machine is suspended, and leases do not.
        constexpr std::chrono::seconds kAtMost{1};
        changed_.wait_for(mutex_, std::min<Steady::duration>(wake_at_ - caller_->timing().now(), kAtMost));
      }
    }
    if (ended_) return;
    wake_at_ = Steady::time_point::max();
  }
}

Keeper::Keeper(std::shared_ptr<Caller> caller, bool with_thread, StartThread start_thread)
    : shared_(std::make_shared<Shared>(std::move(caller))),
      with_thread_(with_thread),
      start_thread_(std::move(start_thread)) {}

Keeper::~Keeper() {
  shared_->end();
  std::thread thread;
  {
    const Locked lock(mutex_);
    thread.swap(thread_);
  }
  if (!thread.joinable()) return;
  // A callback of the caller's may drop the last of all; then the thread ends by itself, right away.
  thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
}

bool Keeper::start() {
  if (!with_thread_) return true;
  const Locked lock(mutex_);
  if (thread_.joinable()) return true;
  try {
    thread_ = start_thread_([shared = shared_] { shared->run(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

bool Keeper::add(const std::shared_ptr<Hold::State>& state) {
  const bool is_new = shared_->add(state);
  shared_->wake_by(state->next_renewal());
  // A try in flight knows nothing of it, and may last until its owner ought to have been told something.
  if (is_new) shared_->interrupt_if_late_for(state->next_change());
  return start();
}

void Keeper::remove(const Hold::State* state) { shared_->remove(state); }
void Keeper::wake_by(Steady::time_point time) { shared_->wake_by(time); }
void Keeper::tell_now(Steady::time_point now) {
  shared_->wake_by(now);
  shared_->interrupt_if_late_for(now);
}
Steady::time_point Keeper::step() { return shared_->step(); }

}  // namespace turnstile::client
