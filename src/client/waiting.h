// lock(): ask, then wait for one's turn, by whichever way gets through.
#pragma once

#include <optional>
#include <stop_token>

#include "client/core.h"
#include "turnstile/lock_client.h"

namespace turnstile::client {

// One lock() call.
//
// `POST /lock` is the only thing that decides. The stream and the status poll just say when to ask again, so
// nothing that they miss, repeat or misunderstand can do harm; asking again is harmless (S2).
// A loop, never a recursion: a waiter that is passed over for ever keeps constant memory (L10).
// Blocks its thread: in the transport, or between tries in Timing::sleep_until; stop and deadline end both.
// Threads: one.
class Waiting {
 public:
  Waiting(LockClient::Core& core, const LockRequest& request, Steady::time_point deadline,
          std::stop_token stop);

  Expected<LockResult> run();

 private:
  using Outcome = std::optional<Expected<LockResult>>;  // nullopt: go on waiting

  // The three ways; each returns after an outcome, a change of way, or a while.
  Outcome long_poll();
  Outcome stream();
  Outcome status_poll();

  // Sends POST /lock. With an error that may pass it pauses and returns nullopt; failed_ says so.
  Outcome ask(Milliseconds wait);
  Outcome decided(const LockAnswer& answer, Steady::time_point sent_at);
  Outcome acquired(const LockAnswer& answer, Steady::time_point sent_at);
  Outcome not_answered(const CallFailure& failure);
  void note_cut(const CallFailure& failure, Milliseconds wait, Steady::time_point began);
  bool asks_for_me(const Event& event) const;
  bool out_of_time() const;
  Expected<LockResult> give_up();
  void leave();
  void report(const WaitingStatus& status);
  Milliseconds time_left(Milliseconds at_most) const;

  LockClient::Core& core_;
  const LockRequest& request_;
  const Requester who_;
  const Steady::time_point deadline_;
  const std::stop_token stop_;

  WaitBy way_;                   // never `automatic`
  const bool may_change_way_;    // it was
  int cuts_ = 0;                 // long polls in a row that were cut off
  int grants_in_vain_ = 0;       // whose lease was over before we heard of them
  int failures_ = 0;             // tries in a row without an answer
  bool failed_ = false;          // the last call
  bool asked_somebody_ = false;  // a server may have got a request of ours
  bool queued_ = false;          // the server has once said so
  Steady::time_point last_asked_;
  std::optional<ClientError> last_error_;

  std::optional<WaitingStatus> told_;
  Steady::time_point told_at_{};
};

// Leaves the queue; a hold that was granted meanwhile ends as a failure, so that nothing is left behind.
// `answers`: whether the server has done so the last time it was asked.
void cancel_or_release(Caller& caller, const Requester& who, bool answers = true);

}  // namespace turnstile::client
