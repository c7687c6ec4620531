// Deliberate defects, to test the tests: each ring must find those that are its own (docs/testing.md).
//
// They exist only where TURNSTILE_PLANTS is defined: in the copies of the libraries that test/model and
// test/simulation link. Everywhere else `planted()` is a constant, and nothing of them is compiled.
#pragma once

#include <cstdint>
#include <string_view>

namespace turnstile {

// X(name, what goes wrong)
// clang-format off
#define TURNSTILE_ALL_PLANTS(X)                                                                                \
  X(queue_is_lifo, "the waiter who came last is granted first")                                                \
  X(answer_before_sync, "an answer leaves before its change is on the disk")                                   \
  X(sync_now_and_then, "only every other batch is synced")                                                     \
  X(failed_sync_ignored, "a sync that failed counts as one that did not")                                      \
  X(no_directory_sync, "the name of a new log file is not synced")                                             \
  X(snapshot_without_references, "a snapshot leaves the references out")                                       \
  X(event_before_answer, "events do not wait for the answer that caused them")                                 \
  X(event_before_sync, "events do not wait for the disk")                                                      \
  X(lost_letter, "an answer for a poll of another loop is not announced to it")                                \
  X(gate_of_one_loop, "when the disk is done only the first loop is told")                                     \
  X(batch_does_not_wait, "the answer of a batch does not wait for the disk")                                   \
  X(read_before_sync, "a status tells what is not on the disk yet")                                            \
  X(bond_lost_by_repeat, "a repeated unlock takes the bond of a waiter of the same name")                      \
  X(full_stream_forgets, "what a full stream has no room for is forgotten")                                    \
  X(catch_up_skips, "a stream that catches up leaves out one event")                                           \
  X(resume_with_gap, "who comes back misses the first event")                                                  \
  X(ids_used_again, "event ids of a life without events are told again")
// clang-format on

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
