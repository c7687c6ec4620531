// How much a request may say. All of it can be set; the defaults are those that docs/http-api.md tells users.
//
// Not here: limits of bytes on the wire (heads, bodies), which are the http folder's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace turnstile {

// Lengths are in bytes of UTF-8.
struct ApiLimits {
  size_t type = 64;
  size_t resource_id = 1024;
  size_t node_id = 256;
  size_t request_id = 256;
  size_t error = 4096;
  size_t info = 4096;
  size_t reason = 4096;
  size_t result = 4096;
  std::chrono::milliseconds lease_min{100};
  std::chrono::milliseconds lease_max{std::chrono::hours(24)};
  std::chrono::milliseconds wait_max{std::chrono::minutes(10)};  // a longer wait is cut to this
  size_t batch = 1000;                                           // requests in one POST /batch
  uint32_t list_default = 100;                                   // lanes a page of GET /locks
  uint32_t list_max = 1000;
};

// What a double can hold exactly, so that a token survives a reader that knows no other numbers (JavaScript,
// jq).
inline constexpr uint64_t kMaxJsonInteger = (uint64_t(1) << 53) - 1;

}  // namespace turnstile
