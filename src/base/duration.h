// Durations as people write them: 500ms, 10s, 5m, 1h, 1d, 0.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace turnstile {

Result<Duration> parse_duration(std::string_view text);
// In the largest unit that fits exactly, so that it can be parsed again.
std::string show_duration(Duration duration);

}  // namespace turnstile
