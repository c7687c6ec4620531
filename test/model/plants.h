// The deliberate defects of base/plant.h that the model's histories must find. Those of other rings are in
// the tables of these.
#pragma once

#include "base/plant.h"

namespace turnstile::model {

#define TURNSTILE_PLANT(name, what) Plant::name,
inline constexpr Plant kModelPlants[] = {TURNSTILE_ENGINE_PLANTS(TURNSTILE_PLANT)};
#undef TURNSTILE_PLANT

}  // namespace turnstile::model
