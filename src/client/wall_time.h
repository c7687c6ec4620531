// Times of day on the wire: RFC 3339, in UTC.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "turnstile/clock.h"

namespace turnstile::client {

// nullopt: it is no such time.
std::optional<WallTime> parse_wall_time(std::string_view rfc3339);
// "2026-11-16T01:38:13.047765Z"
std::string show_wall_time(WallTime time);

}  // namespace turnstile::client
