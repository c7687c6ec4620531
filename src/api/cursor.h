// The cursor of GET /locks: where the next page begins, as a text that passes through a URL unharmed.
//
// It is the lane after which to go on, in base64url, so that no state is kept on the server between pages and
// a cursor stays good over a restart. Readers must not look inside.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/limits.h"
#include "engine/types.h"

namespace turnstile {

void append_cursor(std::string& out, const LaneName& last);

// The lane that append_cursor() was given, as views into `scratch`; nothing for a text that it never wrote.
std::optional<LaneName> read_cursor(std::string_view cursor, const ApiLimits& limits, std::string& scratch);

}  // namespace turnstile
