// Request ids, and the jitter of back-offs.
#pragma once

#include <string>

#include "client/timing.h"

namespace turnstile::client {

// 128 random bits in hex: no two requesters of any node ever share one.
std::string new_request_id();

// Between half of `duration` and all of it, so that clients that failed together do not return together.
Milliseconds with_jitter(Milliseconds duration);

}  // namespace turnstile::client
