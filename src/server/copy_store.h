// turnstile copy-store: everything that one store holds into another, with the servers stopped.
#pragma once

#include "base/error.h"
#include "server/settings.h"

namespace turnstile {

// From settings.copy_from into settings.store, which must be empty. Returns how many records it was.
Result<uint64_t> copy_store(const Settings& settings);

}  // namespace turnstile
