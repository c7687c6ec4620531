// The secrets that programs and people log in with, and what a server keeps of them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace turnstile::cli {

// "ts_" and 43 characters: 32 random bytes.
Result<std::string> new_secret();
// 64 hexadecimal digits, as the server's credentials file has it.
std::string sha256_of(std::string_view secret);

}  // namespace turnstile::cli
