// The two ways in which a storage fails, in the words of the public ErrorCode.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <expected>
#include <string>
#include <string_view>

#include "turnstile/error.h"

namespace turnstile::refcount {

inline std::unexpected<ClientError> storage_error(std::string message) {
  return std::unexpected(ClientError{ErrorCode::storage, std::move(message), {}, {}});
}

inline std::unexpected<ClientError> invalid_error(std::string message) {
  return std::unexpected(ClientError{ErrorCode::invalid, std::move(message), {}, {}});
}

// Of a system call that has just failed with `code`.
inline std::unexpected<ClientError> system_storage_error(std::string_view what, const std::string& path,
                                                         int code) {
  return storage_error(fmt::format("cannot {} {}: {}", what, path, std::strerror(code)));
}

}  // namespace turnstile::refcount
