// A file as one text: certificates, credentials and the like.
#pragma once

#include <optional>
#include <string>

namespace turnstile {

// Nothing if it cannot be read: it is not there, or a directory, or its disk fails. Never throws for that, as
// a stream's iterators do.
std::optional<std::string> file_text(const std::string& path);

}  // namespace turnstile
