// Secrets: their digests, and comparing without telling by the time it takes how much was right.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "access/principal.h"

namespace turnstile::access {

// SHA-256. Threads: any.
Digest digest_of(std::string_view secret);

// 64 hexadecimal digits; nothing: it is something else.
std::optional<Digest> parse_digest(std::string_view hex);

// Takes the same time wherever they differ.
bool same_in_constant_time(std::string_view a, std::string_view b);

// Overwrites what is no longer needed.
void erase(std::string& secret);

// The secret in an Authorization header, "Bearer SECRET". Nothing: the header is of another kind.
std::optional<std::string_view> bearer_secret(std::string_view authorization);

}  // namespace turnstile::access
