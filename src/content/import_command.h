// turnstile-content import: what containerd's own store holds becomes blobs that this node uses.
#pragma once

#include "content/settings.h"

namespace turnstile::content {

// Returns the program's exit code: 1 when something was not imported. Can be repeated: what is there already
// is passed over. The lock server is not needed: a blob of this node's has a second name at every moment at
// which another node could remove it, and the plugin tells the server at its start what its node uses.
int run_import(const Settings& settings);

}  // namespace turnstile::content
