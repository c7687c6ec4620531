// Failed log-ins, by address: how long the next one has to wait for its answer.
//
// Secrets have 256 bits, so nobody finds one by trying; but who tries must not fill the log, nor take the
// time of others. Only failures wait. Who knows a secret does not, so somebody behind the same address does
// others no harm.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/sync.h"
#include "base/time.h"

namespace turnstile::access {

// A table of fixed size: an address has four places of its own where it may be, and takes the one that was
// quiet for longest. So whoever has very many addresses forgets his own failures, and nobody's memory grows.
// Time: comes with each call. Threads: any.
class SlowDown {
 public:
  explicit SlowDown(uint64_t seed, size_t sets = 1024);

  // One more has failed: how long it waits.
  Duration failed(std::string_view address, Time now) TS_EXCLUDES(mutex_);

  static constexpr unsigned kFree = 5;  // failures that are answered at once
  static constexpr Duration kFirst = std::chrono::milliseconds(100), kLongest = std::chrono::seconds(5);
  static constexpr Duration kForgets = std::chrono::seconds(10);  // one failure after so much quiet

 private:
  struct Place {
    uint64_t address = 0;  // its hash; 0: free
    unsigned failures = 0;
    Time last{};
  };
  using Set = std::array<Place, 4>;

  const uint64_t seed_;
  Mutex mutex_;
  std::vector<Set> sets_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::access
