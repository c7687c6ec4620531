// Copying a blob's bytes from file to file, and hashing them on the way.
#pragma once

#include <functional>

#include "content/digest.h"
#include "content/directory.h"

namespace turnstile::content {

// From the beginning of one to the beginning of the other, to the end. False: they are not the blob `digest`.
// `read` is called after each piece.
Outcome<bool> copy_verified(int from, int to, const Digest& digest,
                            const std::function<void(size_t bytes)>& read);

}  // namespace turnstile::content
