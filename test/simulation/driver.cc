#include "driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/random_id.h"

namespace turnstile::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

Driver::Driver(const Plan& plan, bool with_trace) : plan_(plan), schedule_(plan.seed) {
  schedule_.wants_trace = with_trace;
  client::seed_jitter(uint32_t(plan.seed));
  history_.resource_scope_by_default = plan.server.engine.default_scope == Scope::resource;
  for (unsigned i = 0; i <= plan.actors; ++i)
    actors_.push_back(std::make_unique<Actor>(
        i == plan.actors ? "watcher" : "n" + std::to_string(i), schedule_, history_,
        [this](Remote& remote) { return connect(remote, {}); }, rare_));
}

Outcome Driver::run() {
  start_servers();
  actors_.back()->watch_everything();
  for (const Move& move : plan_.moves)
    schedule_.at(Schedule::kStart + move.at, [this, &move] { make(move); });
  const Time end = Schedule::kStart + (plan_.moves.empty() ? Duration(0) : plan_.moves.back().at);
  schedule_.run_until(end + seconds(1));
  heal();
  for (const auto& actor : actors_) actor->read_again();
  schedule_.run_until(schedule_.now() + seconds(4));
  for (const auto& actor : actors_) actor->leave();
  end_all();
  Outcome outcome;
  outcome.violations = judge(judged());
  end_streams();
  outcome.violations.insert(outcome.violations.begin(), violations_.begin(), violations_.end());
  outcome.hash = schedule_.hash();
  outcome.trace = std::move(schedule_.trace);
  outcome.calls = history_.calls.size();
  for (const SeenStream& stream : history_.streams) outcome.events += stream.events.size();
  outcome.crashes = crashes_;
  shut_down();
  libraries_.clear();
  actors_.clear();
  outcome.rare = std::move(rare_);
  return outcome;
}

void Driver::make(const Move& move) {
  schedule_.note(show(move));
  if (move.kind < MoveKind::library) return actors_[move.actor]->make(move);
  if (move.kind == MoveKind::library) return begin_library(move);
  make_weather(move);
}

void Driver::begin_library(const Move& move) {
  const LibraryWork work{.node = "lib" + std::to_string(move.actor),
                         .servers = servers(),
                         .type = move.type,
                         .resource = move.resource,
                         .scope = move.scope,
                         .way = unsigned(move.way),
                         .how = unsigned(move.how),
                         .lease = move.lease,
                         .work = move.time,
                         .patience = milliseconds(1000) + 2 * move.wait};
  libraries_.push_back(std::make_unique<LibraryClient>(
      work, schedule_, history_,
      [this](Remote& remote, std::string_view server) { return connect(remote, server); }));
}

void Driver::check_loaded(const std::set<uint64_t>& known) {
  for (const uint64_t token : must_be_held(judged(), schedule_.now()))
    if (!known.contains(token))
      violation(fmt::format("what was loaded knows nothing of the hold of token {}", token));
}

// Everybody is answered, goes, and leaves nothing behind.
void Driver::end_all() {
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
      violation(fmt::format("{} requests were never answered", open));
    actor->hang_up();
  }
  take_it_easy();
  schedule_.run_until(schedule_.now() + longest + seconds(15));
  for (const auto& library : libraries_) {
    if (!library->finished()) violation("a lock() of the library's never returned");
    for (const std::string& each : library->violations()) violation(each);
    schedule_.note("library: " + library->outcome());
    ++rare_["library: " + library->outcome().substr(0, library->outcome().find(' '))];
  }
  if (const size_t lanes = lanes_in_use(); lanes > 0)
    violation(fmt::format("{} lanes are still in use when everybody has gone", lanes));
}

// Behind what is judged: a stream that is open is owed all that happens.
void Driver::end_streams() {
  for (const auto& actor : actors_) actor->stop_watching();
  schedule_.run_until(schedule_.now() + seconds(2));
  if (const size_t left = listeners(); left > 0)
    violation(fmt::format("events are still looked up for {} streams when all have ended", left));
}

}  // namespace turnstile::sim
