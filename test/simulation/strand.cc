#include "strand.h"

#include <algorithm>
#include <utility>

namespace turnstile::sim {
namespace {

Strand* the_current = nullptr;

}  // namespace

void StrandHost::start(std::function<void()> body) {
  strands.push_back(std::make_unique<Strand>(*this, std::move(body)));
}

void StrandHost::die() {
  dead = true;
  for (const auto& strand : strands) strand->wake(true);
}

bool StrandHost::finished() const {
  return std::ranges::all_of(strands, [](const auto& each) { return each->finished(); });
}

Strand::Strand(StrandHost& host, std::function<void()> body) : host_(host), fiber_(std::move(body)) {
  asleep_ = true;
  wake(true);
}

Strand* Strand::current() { return the_current; }

void Strand::sleep(Duration time) {
  if (host_.dead) return;
  asleep_ = true;
  host_.schedule.after(time, [this, sleep = ++sleeps_] { go_on(sleep); });
  fiber_.wait();
}

void Strand::idle(Duration time) {
  idle_ = true;
  sleep(time);
  idle_ = false;
}

void Strand::wake(bool whatever) {
  if (asleep_ && (idle_ || whatever))
    host_.schedule.after(Duration(1), [this, sleep = sleeps_] { go_on(sleep); });
}

void Strand::go_on(uint64_t sleep) {
  if (!asleep_ || sleep != sleeps_ || finished()) return;
  if (!host_.dead && host_.paused_until > host_.schedule.now())
    return host_.schedule.at(host_.paused_until, [this, sleep] { go_on(sleep); });
  asleep_ = false;
  Strand* const before = std::exchange(the_current, this);
  fiber_.resume();
  the_current = before;
}

}  // namespace turnstile::sim
