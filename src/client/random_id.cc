#include "client/random_id.h"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <random>

#include "base/check.h"

namespace turnstile::client {

std::string new_request_id() {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<uint8_t, 16> bytes;
  TS_CHECK(getrandom(bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()),
           "the kernel gives random bytes");
  std::string id;
  id.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    id += kHex[byte >> 4];
    id += kHex[byte & 15];
  }
  return id;
}

namespace {
std::minstd_rand& jitter() {
  thread_local std::minstd_rand engine{std::random_device{}()};
  return engine;
}
}  // namespace

void seed_jitter(uint32_t seed) { jitter().seed(seed); }

Milliseconds with_jitter(Milliseconds duration) {
  const auto half = duration.count() / 2;
  return Milliseconds(half + std::uniform_int_distribution<int64_t>(0, duration.count() - half)(jitter()));
}

}  // namespace turnstile::client
