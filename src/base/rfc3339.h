// Times as people and JSON readers want them: 2026-11-15T21:40:46.123456Z.
#pragma once

#include <string>

#include "base/time.h"

namespace turnstile {

void append_rfc3339(std::string& out, Time time);

}  // namespace turnstile
