#include "access/slow_down.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include "base/hash.h"

namespace turnstile::access {
namespace {

// Of an IPv6 address its network: whoever has one address there has all of them.
uint64_t hash_of(std::string_view address) {
  in6_addr bytes{};
  if (inet_pton(AF_INET6, std::string(address).c_str(), &bytes) != 1) return xxh3_64(address);
  return xxh3_64({reinterpret_cast<const char*>(&bytes), 8});
}

}  // namespace

SlowDown::SlowDown(uint64_t seed, size_t sets) : seed_(seed), sets_(sets) {}

Duration SlowDown::failed(std::string_view address, Time now) {
  // Mixed with a number that nobody else knows: no two addresses can be found that share their places.
  const uint64_t hash = (hash_of(address) ^ seed_) * 0x9E3779B97F4A7C15u | 1;
  const Locked lock(mutex_);
  Set& set = sets_[(hash >> 32) % sets_.size()];
  auto place = std::find_if(set.begin(), set.end(), [&](const Place& each) { return each.address == hash; });
  if (place == set.end()) {
    place = std::min_element(set.begin(), set.end(),
                             [](const Place& a, const Place& b) { return a.last < b.last; });
    *place = {hash, 0, now};
  }
  const auto forgotten = uint64_t(std::max<int64_t>(0, (now - place->last) / kForgets));
  place->failures -= unsigned(std::min<uint64_t>(forgotten, place->failures));
  place->last = now;
  place->failures = std::min(place->failures + 1, 64u);
  if (place->failures <= kFree) return Duration(0);
  return std::min<Duration>(kLongest, kFirst * (int64_t(1) << std::min(place->failures - kFree - 1, 16u)));
}

}  // namespace turnstile::access
