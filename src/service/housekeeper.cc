#include "service/housekeeper.h"

#include <chrono>
#include <mutex>
#include <utility>

#include "service/service.h"

namespace turnstile {
namespace {

constexpr std::chrono::milliseconds kExpireEvery{20};
constexpr std::chrono::milliseconds kTickEvery{250};
constexpr std::chrono::seconds kSnapshotCheckEvery{1};
constexpr std::chrono::milliseconds kCrowdLeavesAfter{1};
// A crowd that does not leave has callers who do not read. They are cut off after half a minute, for which
// nobody's lease may wait.
constexpr int kMostLooksAtACrowd = 20;

void sleep(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

void Housekeeper::start() {
  expirer_ = std::jthread([this](const std::stop_token& stop) { expire(stop); });
  snapshooter_ = std::jthread([this](const std::stop_token& stop) { take_snapshots(stop); });
}

void Housekeeper::stop() {
  snapshooter_.request_stop();
  expirer_ = {};
  snapshooter_ = {};
}

void Housekeeper::hurry() {
  {
    const Locked lock(mutex_);
    if (std::exchange(hurry_, true)) return;
  }
  changed_.notify_all();
}

void Housekeeper::wait(const std::stop_token& stop, std::chrono::milliseconds time) {
  const std::stop_callback wake(stop, [this] { hurry(); });
  const Locked lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + time;
  while (!hurry_ && changed_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
  }
  hurry_ = false;
}

void Housekeeper::expire(const std::stop_token& stop) {
  Effects effects;
  Time next_tick{};
  while (!stop.stop_requested()) {
    wait(stop, kExpireEvery);
    while (!stop.stop_requested() && service_.expire_some(effects)) {
      // Answers that are made faster than they are written would only pile up.
      for (int i = 0; i < kMostLooksAtACrowd && service_.is_crowded() && !stop.stop_requested(); ++i)
        sleep(stop, kCrowdLeavesAfter);
    }
    if (service_.now() < next_tick) continue;
    service_.tick();
    next_tick = service_.now() + kTickEvery;
  }
}

void Housekeeper::take_snapshots(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    sleep(stop, kSnapshotCheckEvery);
    if (!stop.stop_requested()) service_.take_snapshot(stop);
  }
}

}  // namespace turnstile
