// What can go wrong here, in the classes that containerd tells apart: what it does next depends on the class
// alone (it asks again after `unavailable`, goes on after `already_exists`, and gives up after all others).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "base/error.h"

namespace turnstile::content {

enum class ErrorClass : uint8_t {
  invalid_argument,
  not_found,
  already_exists,
  failed_precondition,
  out_of_range,
  unavailable,         // ask again
  resource_exhausted,  // the disk is full
  internal,
};

struct ContentError {
  ErrorClass code = ErrorClass::internal;
  std::string message;
};

template <class T>
using Outcome = std::expected<T, ContentError>;

using turnstile::fail;  // for errors that containerd never sees: those of the start

inline std::unexpected<ContentError> fail(ErrorClass code, std::string message) {
  return std::unexpected(ContentError{code, std::move(message)});
}

// For a failed call of the system: `what` was being done to `name`, and errno says why it was not.
std::unexpected<ContentError> fail_errno(std::string_view what, std::string_view name, int error_number);

}  // namespace turnstile::content
