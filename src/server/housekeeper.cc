#include "server/housekeeper.h"

#include "base/log.h"
#include "server/app.h"

namespace turnstile {
namespace {

constexpr std::chrono::milliseconds kExpireEvery{20};
constexpr std::chrono::milliseconds kTickEvery{250};
constexpr std::chrono::seconds kSnapshotCheckEvery{1};
constexpr size_t kMostAtOnce = 1000;  // resources between two looks at the clock

}  // namespace

Housekeeper::Housekeeper(App& app)
    : app_(app), expire_thread_([this] { expire_loop(); }), snapshot_thread_([this] { snapshot_loop(); }) {}

Housekeeper::~Housekeeper() {
  {
    const Locked lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
  expire_thread_.join();
  snapshot_thread_.join();
}

bool Housekeeper::wait(std::chrono::milliseconds time) {
  const Locked lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + time;
  while (!ended_ && ended_changed_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
  }
  return !ended_;
}

void Housekeeper::expire_loop() {
  Effects effects;
  Time next_tick{};
  while (wait(kExpireEvery)) {
    for (;;) {
      const size_t looked_at = app_.engine().expire(app_.now(), effects, kMostAtOnce, [this](Effects& step) {
        app_.router().release(StepId(step.step));  // there is no answer that its events could overtake
        app_.distribute(step, nullptr);
      });
      if (looked_at < kMostAtOnce) break;
    }
    const Time now = app_.now();
    if (now < next_tick) continue;
    next_tick = now + kTickEvery;
    app_.tick();
  }
}

void Housekeeper::snapshot_loop() {
  while (wait(kSnapshotCheckEvery)) {
    if (!app_.journal().wants_snapshot()) continue;
    const Time start = app_.now();
    const Result<void> taken =
        app_.journal().snapshot([this](const Journal::Write& write) { app_.engine().dump(write); });
    if (taken)
      log_info("snapshot taken", {{"ms", to_ms(app_.now() - start)}});
    else
      log_warning("snapshot failed; the log goes on growing", {{"error", taken.error().message}});
  }
}

}  // namespace turnstile
