#include "service/housekeeper.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "service/service.h"

namespace turnstile {
namespace {

constexpr std::chrono::milliseconds kExpireEvery{20};
constexpr std::chrono::milliseconds kTickEvery{250};
constexpr std::chrono::seconds kSnapshotCheckEvery{1};

// False: it is time to end.
bool wait(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

Housekeeper::Housekeeper(Service& service)
    : service_(service),
      expirer_([this](const std::stop_token& stop) { expire(stop); }),
      snapshooter_([this](const std::stop_token& stop) { take_snapshots(stop); }) {}

void Housekeeper::expire(const std::stop_token& stop) {
  Effects effects;
  Time next_tick{};
  while (wait(stop, kExpireEvery)) {
    while (!stop.stop_requested() && service_.expire_some(effects)) {
    }
    if (service_.now() < next_tick) continue;
    service_.tick();
    next_tick = service_.now() + kTickEvery;
  }
}

void Housekeeper::take_snapshots(const std::stop_token& stop) {
  while (wait(stop, kSnapshotCheckEvery)) service_.take_snapshot(stop);
}

}  // namespace turnstile
