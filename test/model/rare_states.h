// What random histories reach seldom, counted: a comparison says nothing about a state that it never saw.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace turnstile::model {

// X(name, what was reached)
#define TURNSTILE_RARE_STATES(X)                                                             \
  X(indexed_queue, "more than 32 waiters in a lane")                                         \
  X(told_late, "a poll of an ended queue answered after the step that ended it")             \
  X(told_first, "who was heard of before it was told how its wait ended")                    \
  X(voided_untold, "a success that voids skips while some have not been told")               \
  X(undelivered, "a grant taken back because its answer reached nobody")                     \
  X(silent_waiter, "a grant to a waiter that had long been silent")                          \
  X(behind_a_waiter, "queued behind a waiter of another lane alone")                         \
  X(third_attempt, "a grant after two failures")                                             \
  X(success_after_failure, "a success that ends the counting of attempts")                   \
  X(cleared_references, "references cleared by a success")                                   \
  X(references_full, "refused because of the limit of references")                           \
  X(waiters_full, "refused because of the limit of waiters")                                 \
  X(kept_long, "a skip by a success that is kept for longer than the server's own time")     \
  X(keep_cut, "a success that wanted to count for too long")                                 \
  X(kept_for_nobody, "a success that counts for those who wait alone")                       \
  X(old_result, "a result told to one who waited, when the lane's last success was another") \
  X(forgotten, "a success that was forgotten")                                               \
  X(reload_kept, "a restart while a success with a result was kept")                         \
  X(reload_ran_out, "a success that ran out while the server was away")                      \
  X(zero_claim, "a grant that had no time to be claimed")                                    \
  X(zero_grace, "a waiter that left without any grace")                                      \
  X(too_late, "a command when something was due that nobody had ended")                      \
  X(reload_unclaimed, "a restart while a grant was not claimed")                             \
  X(reload_grace, "a restart while a waiter's grace ran")                                    \
  X(reload_untold, "a restart while some had not been told how their wait ended")            \
  X(reload_lost_tail, "a restart without what was not durable yet")                          \
  X(reload_late_history, "a snapshot and a log that begins before it")                       \
  X(token_block, "tokens of another block after a restart")

enum class Rare : uint8_t {
#define TURNSTILE_RARE(name, what) name,
  TURNSTILE_RARE_STATES(TURNSTILE_RARE)
#undef TURNSTILE_RARE
};

struct RareText {
  std::string_view name, what;
};
inline constexpr RareText kRareStates[] = {
#define TURNSTILE_RARE(name, what) {#name, what},
    TURNSTILE_RARE_STATES(TURNSTILE_RARE)
#undef TURNSTILE_RARE
};

using RareCounts = std::array<uint64_t, std::size(kRareStates)>;  // how many times

}  // namespace turnstile::model
