// Ending a hold, so that repeating it is safe.
#pragma once

#include "client/caller.h"
#include "client/requests.h"
#include "turnstile/hold.h"

namespace turnstile::client {

// What came of an unlock. maybe_done: with `unavailable`, the server may have done it.
struct Unlocked {
  Expected<Released> released;
  bool maybe_done = false;
};

struct Patience {
  Milliseconds timeout{0};  // of a try; 0: the settings'
  int retries = -1;         // -1: the settings'
  bool over_hand_over = true;
  std::stop_token stop{};
};

// Of a caller that has other things to do: the lease ends what the server does not hear of.
inline const Patience kShortPatience{.timeout = Milliseconds(1'000), .retries = 1, .over_hand_over = false};

// maybe_done: an earlier unlock of this hold may have had its effect.
Unlocked unlock(Caller& caller, const Requester& who, uint64_t token, const WorkResult& result,
                bool maybe_done = false, Patience patience = {});

// The rule by which a refused unlock is judged, also for batches.
//
// When the answer to an earlier try was lost, that try may be what ended the hold, so `not_held`,
// `not_holder` and `stale_token` count as released, but not as confirmed; the server remembers the tokens of
// released holds only for a minute, and only the last one of a lane (S15). When none was lost, the hold was
// gone before: `lost`.
Unlocked judge_refused_unlock(ClientError error, bool maybe_done);

}  // namespace turnstile::client
