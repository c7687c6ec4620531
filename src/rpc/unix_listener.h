// A listening unix socket that only this user can reach.
#pragma once

#include <string>

#include "base/error.h"
#include "base/unique_fd.h"

namespace turnstile::rpc {

// A socket that a dead process left at `path` is replaced; one that somebody listens on is not.
Result<UniqueFd> listen_on_unix(const std::string& path);

}  // namespace turnstile::rpc
