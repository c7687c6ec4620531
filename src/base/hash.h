// The two hashes in use: FNV-1a, which the seeds choose for picking a shard, and xxHash for tables and
// checksums.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace turnstile {

constexpr uint32_t fnv1a_32(std::string_view bytes) {
  uint32_t hash = 2166136261u;
  for (char byte : bytes) hash = (hash ^ uint8_t(byte)) * 16777619u;
  return hash;
}

inline uint64_t xxh3_64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace turnstile
