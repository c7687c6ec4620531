// Deliberate defects, to test the tests: each ring must find those that are its own (docs/testing.md).
//
// They exist only where TURNSTILE_PLANTS is defined: in the copies of the libraries that test/model and
// test/simulation link. Everywhere else `planted()` is a constant, and nothing of them is compiled.
#pragma once

#include <cstdint>
#include <string_view>

namespace turnstile {

// X(name, what goes wrong). Of the engine:
#define TURNSTILE_ENGINE_PLANTS(X)                                                                     \
  X(queue_is_lifo, "the waiter who came last is granted first")                                        \
  X(tokens_begin_anew, "a restart that finds no hold goes on with tokens that were used before")       \
  X(tickets_begin_anew, "who queues after a restart comes before those who waited")                    \
  X(stale_unlock_accepted, "an unlock with an old token ends the hold of today")                       \
  X(anybody_may_unlock, "another node's unlock ends a hold")                                           \
  X(renewal_without_effect, "a lease that was renewed runs out all the same")                          \
  X(asking_prolongs_max_hold, "max_hold begins again whenever the holder asks")                        \
  X(double_expiry, "the next holder expires together with the first")                                  \
  X(cancel_wakes_nobody, "who waited behind a cancelled waiter of another lane stays asleep")          \
  X(broken_bond_wakes_nobody, "who waited behind a waiter whose bond broke stays asleep")              \
  X(success_wakes_nobody, "who waited in another lane for a hold that succeeded stays asleep")         \
  X(scopes_of_waiters_ignored, "an operation overtakes an older waiter that excludes all others")      \
  X(attempts_not_counted, "every attempt is told as the first")                                        \
  X(failures_outlive_success, "after a success attempts are counted on")                               \
  X(permanent_failure_ends_nobody, "the waiters of a permanent failure are tried one after the other") \
  X(completion_outlives_its_time, "at the very moment when a completion ends it still counts")         \
  X(keep_ignored, "a success counts for as long as all others, whatever it says")                      \
  X(keep_not_cut, "a success counts for as long as it says, however long")                             \
  X(keep_begins_anew, "a success that is kept counts from the restart on")                             \
  X(result_of_another, "who has waited is shown the result of the lane's last success")                \
  X(results_never_freed, "a result that nobody can ask for any more still counts against the limit")   \
  X(snapshot_without_result, "a snapshot forgets what a success has left")                             \
  X(forgotten_until_restart, "a success that was forgotten is back after a restart")                   \
  X(new_bond_too_late, "a waiter that has come back leaves when the grace of its old bond is over")    \
  X(grace_has_no_alarm, "nobody looks when a waiter's grace is over")                                  \
  X(silent_waiter_blocks, "a waiter that has long been silent has all of claim_timeout")               \
  X(status_keeps_by_poll, "a grant is taken back although its holder has seen it in a status")         \
  X(renew_keeps_by_poll, "a grant is taken back although its holder has renewed it")                   \
  X(undelivered_stays_claimed, "a grant that reached nobody is held as if it had")                     \
  X(ended_told_twice, "a long poll of a queue that ended is answered twice")                           \
  X(ended_not_told_first, "who subscribes before it was told how its wait ended hears nothing of it")  \
  X(ended_adds_no_reference, "a skip told to the long polls of an ended queue leaves no reference")    \
  X(untold_skips_survive, "a delete does not void the skips of those who were not told yet")           \
  X(untold_voids_forgotten, "skips that were voided before they were told are back after a restart")   \
  X(cleared_references_count, "references that a delete has cleared still count against the limit")    \
  X(dereference_forgotten, "a waiting delete keeps the reference that it came to give up")             \
  X(index_misses_newcomers, "in a long queue those who came last cannot be found")                     \
  X(snapshot_without_references, "a snapshot forgets who uses a resource")                             \
  X(snapshot_without_first_waiter, "a snapshot forgets the first waiter of each queue")                \
  X(snapshot_without_completion, "a snapshot forgets how the last hold ended")                         \
  X(reload_forgets_grace, "after a restart a waiter whose connection has gone waits for ever")

// Of what is around it, from the journal to the streams:
#define TURNSTILE_SERVER_PLANTS(X)                                                        \
  X(answer_before_sync, "an answer leaves before its change is on the disk")              \
  X(sync_now_and_then, "only every other batch is synced")                                \
  X(failed_sync_ignored, "a sync that failed counts as one that did not")                 \
  X(no_directory_sync, "the name of a new log file is not synced")                        \
  X(event_before_answer, "events do not wait for the answer that caused them")            \
  X(event_before_sync, "events do not wait for the disk")                                 \
  X(lost_letter, "an answer for a poll of another loop is not announced to it")           \
  X(gate_of_one_loop, "when the disk is done only the first loop is told")                \
  X(batch_does_not_wait, "the answer of a batch does not wait for the disk")              \
  X(last_item_decides, "a batch waits for the disk only if its last item does")           \
  X(read_before_sync, "a status tells what is not on the disk yet")                       \
  X(bond_lost_by_repeat, "a repeated unlock takes the bond of a waiter of the same name") \
  X(full_stream_forgets, "what a full stream has no room for is forgotten")               \
  X(catch_up_skips, "a stream that catches up leaves out one event")                      \
  X(resume_with_gap, "who comes back misses the first event")                             \
  X(ids_used_again, "event ids of a life without events are told again")

// Of the replicated store and of who leads:
#define TURNSTILE_REPLICA_PLANTS(X)                                                          \
  X(unguarded_write, "a leader writes without asking whether it still leads")                \
  X(answer_before_confirmed, "a write whose outcome is unknown counts as done")              \
  X(gap_kept, "a new leader goes on behind a batch that has no end")                         \
  X(token_reused_after_takeover, "a new leader goes on with the tokens that it has read")    \
  X(missed_log_unnoticed, "a standby goes on although it has missed a part of the log")      \
  X(renewal_by_deposed_leader, "what changes nothing is told without asking who leads")      \
  X(renewal_is_proof, "a leader that renews its lease does not look whether it still leads") \
  X(late_answer_counts, "a leader that wakes up tells what etcd answered while it slept")

// Of the content plugin, between a blob and the lock server:
#define TURNSTILE_CONTENT_PLANTS(X)                                                                       \
  X(assumed_release_counts, "a release that nobody has confirmed makes this node count as a user")        \
  X(adoption_uncounted, "what was adopted while no server answered is used without a name of its own")    \
  X(late_unlink, "a blob is removed although the right to remove it may have run out")                    \
  X(new_life_unnoticed, "a server that has forgotten everything is not told again what is used")          \
  X(forgotten_count_counts, "a count of before the server forgot everything is taken for one of now")     \
  X(old_skip_counts, "a skip of before the server forgot everything is taken for one of now")             \
  X(removes_in_young_life, "a blob is removed before the others had time to say that they use it")        \
  X(second_names_trusted, "where links are, a removal takes every use to have a second name")             \
  X(guarded_once, "a second name that went with a damaged file is not made again")                        \
  X(settles_what_is_asked_for, "a use is given up at the server while another begins")                    \
  X(doubt_ignored, "a use begins while a word of the last one's end may still be on its way")             \
  X(queued_end_of_use, "a delete that waits for its turn ends a use that has begun meanwhile")            \
  X(confirmed_too_early, "a use is confirmed before it is written down, and may be forgotten in between") \
  X(leaves_aside, "after a crash what was put aside is never brought back")

#define TURNSTILE_ALL_PLANTS(X) \
  TURNSTILE_ENGINE_PLANTS(X)    \
  TURNSTILE_SERVER_PLANTS(X) TURNSTILE_REPLICA_PLANTS(X) TURNSTILE_CONTENT_PLANTS(X)

enum class Plant : uint8_t {
  none,
#define TURNSTILE_PLANT(name, what) name,
  TURNSTILE_ALL_PLANTS(TURNSTILE_PLANT)
#undef TURNSTILE_PLANT
};

struct PlantText {
  Plant plant;
  std::string_view name, what;
};
inline constexpr PlantText kPlants[] = {
#define TURNSTILE_PLANT(name, what) {Plant::name, #name, what},
    TURNSTILE_ALL_PLANTS(TURNSTILE_PLANT)
#undef TURNSTILE_PLANT
};

constexpr std::string_view name_of(Plant plant) {
  for (const PlantText& each : kPlants)
    if (each.plant == plant) return each.name;
  return "none";
}

#ifdef TURNSTILE_PLANTS
inline constinit Plant the_plant = Plant::none;  // which one is there now
inline bool planted(Plant plant) { return the_plant == plant; }
#else
constexpr bool planted(Plant) { return false; }
#endif

}  // namespace turnstile
