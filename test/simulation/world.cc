#include "world.h"

#include <fmt/format.h>

#include <algorithm>

#include "actor.h"
#include "checker.h"
#include "client/random_id.h"
#include "library_client.h"

namespace turnstile::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class World {
 public:
  World(const Plan& plan, bool with_trace)
      : plan_(plan), schedule_(plan.seed), server_(plan.server, schedule_, rare_) {
    schedule_.wants_trace = with_trace;
    client::seed_jitter(uint32_t(plan.seed));
    history_.resource_scope_by_default = plan.server.engine.default_scope == Scope::resource;
    server_.on_failed = [this] {
      ++rare_["writes of unknown outcome"];
      schedule_.random.chance(2) ? crash(milliseconds(1)) : change_life();
    };
    for (unsigned i = 0; i <= plan.actors; ++i)
      actors_.push_back(std::make_unique<Actor>(
          i == plan.actors ? "watcher" : "n" + std::to_string(i), schedule_, history_,
          [this](Remote& remote) { return server_.connect(remote); }, rare_));
  }

  Outcome run() {
    start();
    actors_.back()->watch_everything();
    for (const Move& move : plan_.moves)
      schedule_.at(Schedule::kStart + move.at, [this, &move] { make(move); });
    const Time end = Schedule::kStart + (plan_.moves.empty() ? Duration(0) : plan_.moves.back().at);
    schedule_.run_until(end + seconds(1));
    heal();
    finish();
    Outcome outcome;
    outcome.violations = judge(judged());
    outcome.violations.insert(outcome.violations.begin(), violations_.begin(), violations_.end());
    outcome.hash = schedule_.hash();
    outcome.trace = std::move(schedule_.trace);
    outcome.rare = std::move(rare_);
    outcome.calls = history_.calls.size();
    for (const SeenStream& stream : history_.streams) outcome.events += stream.events.size();
    outcome.crashes = crashes_;
    return outcome;
  }

 private:
  Judged judged() const {
    return {history_,   plan_.server.engine, disturbances_, Schedule::kStart,
            slow_disk_, clock_set_,          clock_back_};
  }

  void make(const Move& move) {
    schedule_.note(show(move));
    switch (move.kind) {
      case MoveKind::library:
        libraries_.push_back(std::make_unique<LibraryClient>(
            LibraryWork{.node = "lib" + std::to_string(move.actor),
                        .type = move.type,
                        .resource = move.resource,
                        .scope = move.scope,
                        .way = unsigned(move.way),
                        .how = unsigned(move.how),
                        .lease = move.lease,
                        .work = move.time,
                        .patience = milliseconds(1000) + 2 * move.wait},
            schedule_, history_, [this](Remote& remote) { return server_.connect(remote); }));
        return;
      case MoveKind::crash:
        return crash(move.time);
      case MoveKind::pause:
        disturbances_.push_back({schedule_.now(), schedule_.now() + move.time + milliseconds(50)});
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
      case MoveKind::change_life:
        return change_life();
      default:
        return actors_[move.actor]->make(move);
    }
  }

  void start() {
    if (const std::string error = server_.start(); !error.empty()) {
      violations_.push_back("the server did not start again: " + error);
      return;
    }
    loaded();
  }

  // S31: what was told is known.
  void loaded() {
    const std::set<uint64_t> known = server_.loaded_tokens();
    for (const uint64_t token : must_be_held(judged(), schedule_.now()))
      if (!known.contains(token))
        violations_.push_back(fmt::format("after a start the hold of token {} is not known any more", token));
  }

  void crash(Duration down) {
    if (!server_.is_up()) return;
    ++crashes_;
    schedule_.note("crash");
    disturbances_.push_back({schedule_.now(), schedule_.now() + down + milliseconds(50)});
    server_.crash();
    schedule_.after(down, [this] { start_when_possible(); });
  }

  // A start loads from the disk, which nobody may be in the middle of using.
  void start_when_possible() {
    if (server_.is_up() || finished_) return;
    if (schedule_.depth() > 0) return schedule_.after(Duration(100), [this] { start_when_possible(); });
    schedule_.note("start");
    if (schedule_.random.chance(8)) {  // a flat battery
      schedule_.wall_skew -= seconds(schedule_.random.between(1, 5));
      clock_back_ = true;
    }
    start();
    if (!healed_ && schedule_.random.chance(5))  // what made it crash may still be there
      schedule_.after(milliseconds(schedule_.random.between(1, 60)), [this] { crash(milliseconds(5)); });
  }

  void change_life() {
    if (!server_.is_up()) return;
    schedule_.note("change of life");
    disturbances_.push_back({schedule_.now(), schedule_.now() + seconds(1)});
    server_.change_life([this](const std::string& error) {
      if (error.empty()) return loaded();
      violations_.push_back("the state could not be loaded again: " + error);
    });
  }

  // The weather is good from now on, and everybody gives up what it has.
  void heal() {
    healed_ = true;
    server_.set_slow_disk(milliseconds(1));
    start_when_possible();
    for (const auto& actor : actors_) actor->read_again();
    schedule_.run_until(schedule_.now() + seconds(4));
    for (const auto& actor : actors_) actor->leave();
  }

  void finish() {
    const EngineSettings& engine = plan_.server.engine;
    // Whoever was granted something and never heard of it, or has gone, is given up by then.
    const Duration longest = std::max({engine.claim_timeout, engine.max_hold, engine.bond_grace}) * 2;
    // Long polls of one connection are answered one after the other.
    const auto waits = [this] {
      return std::ranges::any_of(actors_, [](const auto& each) { return each->unanswered() > 0; });
    };
    for (int i = 0; i < 60 && (i < 2 || waits()); ++i) schedule_.run_until(schedule_.now() + seconds(2));
    for (const auto& actor : actors_) {
      if (const size_t open = actor->unanswered(); open > 0)
        violations_.push_back(fmt::format("{} requests were never answered", open));
      actor->hang_up();
    }
    server_.take_it_easy();
    schedule_.run_until(schedule_.now() + longest + seconds(15));
    for (const auto& library : libraries_) {
      if (!library->finished()) violations_.push_back("a lock() of the library's never returned");
      for (const std::string& each : library->violations()) violations_.push_back(each);
      schedule_.note("library: " + library->outcome());
      ++rare_["library: " + library->outcome().substr(0, library->outcome().find(' '))];
    }
    if (server_.serves() && server_.lanes_in_use() > 0)
      violations_.push_back(
          fmt::format("{} lanes are still in use when everybody has gone", server_.lanes_in_use()));
    finished_ = true;
  }

  const Plan& plan_;
  Rare rare_;
  Schedule schedule_;
  History history_;
  SimServer server_;
  std::vector<std::unique_ptr<Actor>> actors_;  // the last one only watches
  std::vector<std::unique_ptr<LibraryClient>> libraries_;
  std::vector<Disturbance> disturbances_;
  std::vector<std::string> violations_;
  Time clock_set_ = kNever;
  bool clock_back_ = false;
  uint64_t crashes_ = 0;
  bool slow_disk_ = false, healed_ = false, finished_ = false;
};

bool fails(const Plan& plan) { return !play(plan).violations.empty(); }

}  // namespace

Outcome play(const Plan& plan, bool with_trace) { return World(plan, with_trace).run(); }

Plan shrink(Plan plan) {
  for (size_t size = plan.moves.size() / 2; size > 0; size /= 2) {
    for (size_t at = 0; at + size <= plan.moves.size();) {
      Plan less = plan;
      less.moves.erase(less.moves.begin() + ptrdiff_t(at), less.moves.begin() + ptrdiff_t(at + size));
      if (fails(less))
        plan = std::move(less);
      else
        at += size;
    }
  }
  return plan;
}

std::string report(const Plan& plan) {
  const Plan least = shrink(plan);
  const Outcome outcome = play(least, true);
  std::string text = fmt::format("seed {} (./dev sim --seed {} --histories 1)\nsettings: {}\n", plan.seed,
                                 plan.seed, show(plan.server));
  text += fmt::format("{} of {} moves are needed:\n", least.moves.size(), plan.moves.size());
  for (const Move& move : least.moves) text += show(move) + "\n";
  text += "what was seen (microseconds):\n" + outcome.trace;
  for (const std::string& violation : outcome.violations) text += "VIOLATION: " + violation + "\n";
  return text;
}

}  // namespace turnstile::sim
