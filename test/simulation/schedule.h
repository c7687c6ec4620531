// What happens when: the virtual time of a simulated history, and everything that is still to happen in it.
//
// One seed decides everything. What would be threads on a real machine are happenings here, in an order that
// the seed's delays decide; the code of each runs to its end, but for the journal's, which lets others happen
// while it waits for the disk (interleave).
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/time.h"

namespace turnstile::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t below(uint64_t end) { return engine_() % end; }
  int64_t between(int64_t first, int64_t last) { return first + int64_t(below(uint64_t(last - first + 1))); }
  bool chance(unsigned in) { return below(in) == 0; }  // one in so many
  template <class Item>
  const Item& of(const std::vector<Item>& items) {
    return items[below(items.size())];
  }
  uint64_t next() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Threads: one. Time: begins at kStart, and passes only from one happening to the next.
class Schedule final : public TimeSource {
 public:
  static constexpr Time kStart = Time(std::chrono::hours(24 * 365 * 55));  // in 2024

  explicit Schedule(uint64_t seed) : random(seed) {}

  Time now() const { return now_; }
  Time wall() const override { return now_ + wall_skew; }
  Duration steady() const override { return now_.time_since_epoch(); }
  Duration boot() const override { return now_.time_since_epoch(); }

  void at(Time time, std::function<void()> what) {
    queue_.push({std::max(time, now_), ++last_, std::move(what)});
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  // Lets happen what is due until then.
  void run_until(Time end) {
    while (!queue_.empty() && queue_.top().at <= end) run_next();
    now_ = std::max(now_, end);
  }
  // The same from within a happening that waits: what cannot stand that looks at depth().
  void interleave(Duration time) {
    ++depth_;
    run_until(now_ + time);
    --depth_;
  }
  unsigned depth() const { return depth_; }

  // What is told here makes the hash of the history, and its text if somebody wants to read it.
  void note(const std::string& line) {
    hash_ = XXH3_64bits_withSeed(line.data(), line.size(), hash_ + uint64_t(now_.time_since_epoch().count()));
    if (wants_trace) trace += time_text() + line + "\n";
  }
  // Everything that is handed to a kernel gets the next number.
  uint64_t next_stamp() { return ++last_stamp_; }
  uint64_t hash() const { return hash_; }
  std::string time_text() const {
    const std::string us = std::to_string((now_ - kStart).count());
    return std::string(us.size() < 9 ? 9 - us.size() : 0, ' ') + us + "  ";
  }

  Random random;
  Duration wall_skew{};  // an administrator has set the clock
  bool wants_trace = false;
  std::string trace;

 private:
  struct Happening {
    Time at;
    uint64_t number;  // of two at one time the earlier made comes first
    std::function<void()> what;
    bool operator<(const Happening& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  void run_next() {
    now_ = queue_.top().at;
    const std::function<void()> what = std::move(const_cast<Happening&>(queue_.top()).what);
    queue_.pop();
    what();
  }

  std::priority_queue<Happening> queue_;
  Time now_ = kStart;
  uint64_t last_ = 0, last_stamp_ = 0, hash_ = 0;
  unsigned depth_ = 0;
};

}  // namespace turnstile::sim
