// Whether a loop that has run out of work should look for more before it sleeps (decision 0012).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace turnstile::http {

// Learns how long the waits of a loop are, as a processor learns where branches go: for each pattern of the
// last waits (short or long) it remembers how often a short one followed. So it looks when a lock is handed
// around, where every wait is short; and where a short wait always follows a long one (the client's answer
// after a sync of the disk) it looks for that one only. After a pause it does not look until there have been
// a few waits without one: who asks now and then, be it in two packets, is served by being woken.
//
// Every wait teaches, whether the loop looked or slept, so that nothing has to be tried out. Time: none of
// its own, lengths come with learn(). Threads: one.
class LookPredictor {
 public:
  using Length = std::chrono::nanoseconds;
  // Who is to bring the work: a peer, or the disk that output waits for. Each is learned apart.
  enum class From : uint8_t { peers, disk };

  static constexpr std::chrono::microseconds kLongestLook{250};
  static constexpr std::chrono::microseconds kLongestSync{250};
  // What a wait through which the loop slept has in it that a look would not have had.
  static constexpr std::chrono::microseconds kWaking{50};
  // A wait of this length is a pause: whatever follows is not in a hurry.
  static constexpr std::chrono::microseconds kPause{1000};

  // Whether a look is likely to find something soon.
  bool pays(From from) const { return waits_since_pause_ >= kInARow && likely(from) >= kPays; }

  // A wait is over: it took so long, and a look ended it, or else the loop slept.
  void learn(From from, Length waited, bool looked) {
    const Length limit = from == From::peers ? kLongestLook : looked ? kLongestSync : kLongestSync + kWaking;
    const bool is_short = waited < limit;
    int& chance = likely_[size_t(from)][pattern_];
    chance += ((is_short ? kCertain : 0) - chance) / kMemory;
    pattern_ = (pattern_ << 1 | unsigned(is_short)) & (kPatterns - 1);
    waits_since_pause_ = waited < Length(kPause) ? std::min(waits_since_pause_ + 1, kInARow) : 0;
  }

 private:
  static constexpr unsigned kPatterns = 16;  // of four waits
  static constexpr int kInARow = 2;
  static constexpr int kCertain = 1 << 16;
  // A look in vain costs several times what a good one gains; but one of them among many good ones does not
  // stop it.
  static constexpr int kPays = kCertain / 10 * 7;
  static constexpr int kMemory = 4;  // waits after the same pattern

  int likely(From from) const { return likely_[size_t(from)][pattern_]; }

  std::array<std::array<int, kPatterns>, 2> likely_{};  // that a short wait follows, up to kCertain
  unsigned pattern_ = 0;                                // one bit a wait, the last one lowest
  int waits_since_pause_ = 0;                           // up to kInARow
};

}  // namespace turnstile::http
