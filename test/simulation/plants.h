// The deliberate defects (base/plant.h) that the simulation must find.
#pragma once

#include <cstdint>
#include <optional>

#include "base/plant.h"

namespace turnstile::sim {

inline constexpr Plant kSimulationPlants[] = {
    Plant::answer_before_sync,
    Plant::sync_now_and_then,
    Plant::failed_sync_ignored,
    Plant::no_directory_sync,
    Plant::snapshot_without_references,
    Plant::event_before_answer,
    Plant::event_before_sync,
    Plant::lost_letter,
    Plant::gate_of_one_loop,
    Plant::batch_does_not_wait,
    Plant::read_before_sync,
    Plant::bond_lost_by_repeat,
    Plant::full_stream_forgets,
    Plant::catch_up_skips,
    Plant::resume_with_gap,
    Plant::ids_used_again,
};

inline constexpr uint64_t kMostHistories = 10'000;

// Plays histories with this defect, in a process of its own, because the product's assertions may end it:
// that counts as found. None: not found.
std::optional<uint64_t> histories_until_found(Plant plant);

}  // namespace turnstile::sim
