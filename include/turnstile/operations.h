// The operations that every server knows rules for. Programs that share content must use the same names, or
// they do not exclude each other: use these.
#pragma once

namespace turnstile::operations {

inline constexpr const char* kPull = "pull";
inline constexpr const char* kUpdate = "update";
inline constexpr const char* kDelete = "delete";
inline constexpr const char* kOnce = "once";

}  // namespace turnstile::operations
