// The one error type for faults of the caller or the world (style: our own bugs are TS_CHECK, not errors).
#pragma once

#include <expected>
#include <string>

namespace turnstile {

struct Error {
  std::string message;  // a sentence that says what is wrong and what to do
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string message) { return std::unexpected(Error{std::move(message)}); }

}  // namespace turnstile
