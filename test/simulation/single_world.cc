// Plays a plan with one server, whose disk tears and forgets.
#include <algorithm>

#include "driver.h"

namespace turnstile::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SingleWorld final : public Driver {
 public:
  SingleWorld(const Plan& plan, bool with_trace)
      : Driver(plan, with_trace), server_(plan.server, schedule_, rare_) {
    server_.on_failed = [this] {
      ++rare_["writes of unknown outcome"];
      schedule_.random.chance(2) ? crash(milliseconds(1)) : change_life();
    };
  }

 private:
  std::vector<std::string> servers() const override { return {"http://s0"}; }
  LinkPtr connect(Remote& remote, std::string_view) override { return server_.connect(remote); }
  void take_it_easy() override { server_.take_it_easy(); }
  size_t lanes_in_use() override { return server_.serves() ? server_.lanes_in_use() : 0; }
  size_t listeners() override { return server_.serves() ? server_.listeners() : 0; }
  void shut_down() override { ends_ = true; }

  Judged judged() const override {
    return {history_,   plan_.server.engine, disturbances_, Schedule::kStart,
            slow_disk_, clock_set_,          clock_back_};
  }

  void make_weather(const Move& move) override {
    switch (move.kind) {
      case MoveKind::crash:
        return crash(move.time);
      case MoveKind::pause:
        disturb(schedule_.now(), schedule_.now() + move.time + milliseconds(50));
        return server_.pause(move.time);
      case MoveKind::slow_disk:
        slow_disk_ = true;
        server_.set_slow_disk(move.time);
        return schedule_.after(move.time * 2, [this] { server_.set_slow_disk(milliseconds(3)); });
      case MoveKind::sync_fails:
        return server_.fail_next_sync();
      case MoveKind::set_clock:
        schedule_.wall_skew += move.reset ? -seconds(3600) : seconds(3600);
        if (!move.reset) clock_set_ = std::min(clock_set_, schedule_.now());
        clock_back_ = clock_back_ || move.reset;
        return;
      default:
        return change_life();
    }
  }

  void start_servers() override {
    if (const std::string error = server_.start(); !error.empty())
      return violation("the server did not start again: " + error);
    check_loaded(server_.loaded_tokens());
  }

  void crash(Duration down) {
    if (!server_.is_up()) return;
    ++crashes_;
    schedule_.note("crash");
    disturb(schedule_.now(), schedule_.now() + down + milliseconds(50));
    server_.crash();
    schedule_.after(down, [this] { start_when_possible(); });
  }

  // A start loads from the disk, which nobody may be in the middle of using.
  void start_when_possible() {
    if (server_.is_up() || ends_) return;
    if (schedule_.depth() > 0) return schedule_.after(Duration(100), [this] { start_when_possible(); });
    schedule_.note("start");
    if (schedule_.random.chance(8)) {  // a flat battery
      schedule_.wall_skew -= seconds(schedule_.random.between(1, 5));
      clock_back_ = true;
    }
    start_servers();
    if (!healed_ && schedule_.random.chance(5))  // what made it crash may still be there
      schedule_.after(milliseconds(schedule_.random.between(1, 60)), [this] { crash(milliseconds(5)); });
  }

  void change_life() {
    if (!server_.is_up()) return;
    schedule_.note("change of life");
    disturb(schedule_.now(), schedule_.now() + seconds(1));
    server_.change_life([this](const std::string& error) {
      if (error.empty()) return check_loaded(server_.loaded_tokens());
      violation("the state could not be loaded again: " + error);
    });
  }

  void heal() override {
    healed_ = true;
    server_.set_slow_disk(milliseconds(1));
    start_when_possible();
  }

  SimServer server_;
  Time clock_set_ = kNever;
  bool clock_back_ = false, slow_disk_ = false, healed_ = false, ends_ = false;
};

}  // namespace

Outcome play_single(const Plan& plan, bool with_trace) { return SingleWorld(plan, with_trace).run(); }

}  // namespace turnstile::sim
