// The deliberate defects of base/plant.h that the simulation must find; those of the engine are the model's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/plant.h"
#include "plan.h"

namespace turnstile::sim {

#define TURNSTILE_PLANT(name, what) Plant::name,
inline constexpr Plant kSimulationPlants[] = {
    TURNSTILE_SERVER_PLANTS(TURNSTILE_PLANT)
    // Of the engine's, those that show what its checker knows of S38 to S40.
    Plant::keep_ignored,
    Plant::keep_begins_anew, Plant::snapshot_without_result, Plant::forgotten_until_restart};
// And of several servers.
inline constexpr Plant kReplicaPlants[] = {TURNSTILE_REPLICA_PLANTS(TURNSTILE_PLANT)};
#undef TURNSTILE_PLANT

inline constexpr uint64_t kMostHistories = 10'000;

// Plays histories with this defect, in a process of its own, because the product's assertions may end it:
// that counts as found. None: not found.
std::optional<uint64_t> histories_until_found(Plant plant, Plan (*make)(uint64_t seed));

}  // namespace turnstile::sim
