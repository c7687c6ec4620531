// turnstile-content verify: reads what the node uses, and tells in plain words what is gone or damaged.
#pragma once

#include "content/settings.h"

namespace turnstile::content {

// Returns the program's exit code: 1 when something is missing or damaged. Changes nothing unless it is told
// to put away what is damaged; the plugin may run meanwhile.
int run_verify(const Settings& settings);

}  // namespace turnstile::content
