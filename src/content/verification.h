// Whether a file holds the bytes that its name promises.
#pragma once

#include <functional>

#include "content/blob_store.h"

namespace turnstile::content {

// Reads all of it. `pause` is called after each piece with its size, for readers that must not be in the way;
// false ends the reading (error unavailable).
Outcome<bool> is_intact(const OpenBlob& blob, const Digest& digest,
                        const std::function<bool(size_t bytes)>& pause = {});

}  // namespace turnstile::content
