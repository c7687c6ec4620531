// Request ids, and the jitter of back-offs.
#pragma once

#include <cstdint>
#include <string>

#include "client/timing.h"

namespace turnstile::client {

// 128 random bits in hex: no two requesters of any node ever share one.
std::string new_request_id();

// Between half of `duration` and all of it, so that clients that failed together do not return together.
Milliseconds with_jitter(Milliseconds duration);
// For simulations: from here on this thread's jitter is always the same.
void seed_jitter(uint32_t seed);

}  // namespace turnstile::client
