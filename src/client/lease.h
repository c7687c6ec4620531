// How long a hold may be believed: arithmetic, no clock.
#pragma once

#include <algorithm>

#include "client/timing.h"
#include "turnstile/hold.h"

namespace turnstile::client {

// The server counts the lease from when it gets a renewal, which is not before we *sent* it; so a renewal
// that is confirmed, however late, is good from its sending for the lease, less a margin for clocks that run
// at different speeds. All times are of that sending.
// Invariant: sent_at only moves later.
class Lease {
 public:
  static constexpr Steady::time_point kNever = Steady::time_point::max();

  // length 0: no lease, held until released. share: of the lease, after which it is renewed.
  Lease(Milliseconds length, Steady::time_point sent_at, int share)
      : length_(length), share_(share), sent_at_(sent_at) {}

  // Where one of several servers takes over, nobody answers for some seconds: with a lease of 10 s and
  // renewals after a fifth, those may be seven.
  static constexpr int kShare = 3, kShareOfSeveral = 5;

  void confirm(Steady::time_point sent_at, Milliseconds length) {
    sent_at_ = std::max(sent_at_, sent_at);
    length_ = length;
  }

  bool endless() const { return length_.count() == 0; }
  Milliseconds length() const { return length_; }
  Milliseconds margin() const {
    return std::min(std::max(length_ / 10, Milliseconds(50)), Milliseconds(1'000));
  }
  Steady::time_point renew_at() const { return endless() ? kNever : sent_at_ + length_ / share_; }
  Steady::time_point in_danger_at() const { return endless() ? kNever : sent_at_ + length_ / 2; }
  Steady::time_point believed_until() const { return endless() ? kNever : sent_at_ + length_ - margin(); }

  HoldState state_at(Steady::time_point now) const {
    if (now >= believed_until()) return HoldState::lost;
    return now >= in_danger_at() ? HoldState::in_danger : HoldState::held;
  }

 private:
  Milliseconds length_;
  const int share_;
  Steady::time_point sent_at_;
};

}  // namespace turnstile::client
