// turnstile-content export-store: the way back to containerd's own store.
#pragma once

#include "content/settings.h"

namespace turnstile::content {

// Returns the program's exit code: 1 when something is missing. Copies, for a link would pass for a use of
// the blob and keep it in the root; can be repeated. The plugin may run meanwhile, containerd must not.
int run_export(const Settings& settings);

}  // namespace turnstile::content
