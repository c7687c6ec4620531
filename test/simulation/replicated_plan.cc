// Histories of several servers: the clients of plan.cc, and other weather.
#include <algorithm>

#include "plan.h"

namespace turnstile::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSlower = 3;  // an election takes seconds
constexpr Duration kLength = milliseconds(12'000);

Move random_weather(Random& random, unsigned servers) {
  static const std::vector<MoveKind> kinds = {
      MoveKind::server_crash, MoveKind::server_crash, MoveKind::server_pause, MoveKind::server_pause,
      MoveKind::server_pause, MoveKind::cut,          MoveKind::cut,          MoveKind::cut,
      MoveKind::etcd_stall,   MoveKind::etcd_stall,   MoveKind::etcd_full,    MoveKind::lease_ends,
      MoveKind::lease_ends,   MoveKind::hand_over};
  Move move;
  move.kind = random.of(kinds);
  move.at = Duration(random.between(milliseconds(500) / Duration(1), kLength.count()));
  move.actor = unsigned(random.below(servers + 2));  // most of all it is who leads: see the world
  move.reset = random.chance(3);                     // a cut of answers only
  move.time = milliseconds(random.between(20, random.chance(2) ? 6000 : 1500));
  return move;
}

// Somebody asks just then: whoever leads no longer must not answer.
void ask_around(Random& random, Plan& plan, const std::vector<Move>& usual, Duration from, Duration to) {
  for (int64_t asked = usual.empty() ? 0 : random.between(0, 8); asked > 0; --asked) {
    Move move = random.of(usual);
    if (random.chance(3)) move.kind = MoveKind::status;
    move.at = Duration(random.between(from.count(), to.count()));
    plan.moves.push_back(move);
  }
}

// Whoever leads is struck in the middle of a write, and its successor when it has told somebody something:
// who comes then must know it, whatever the first has left behind.
void strike_twice(Random& random, Plan& plan, const std::vector<Move>& usual) {
  plan.replica.journal.key_bytes = 40;
  plan.replica.journal.transaction_keys = 1;
  plan.replica.journal.snapshot_after_keys = random.of<uint64_t>({20, 1000});
  Move first = random_weather(random, plan.replica.servers);
  first.kind = random.of<MoveKind>(
      {MoveKind::server_crash, MoveKind::server_pause, MoveKind::cut, MoveKind::lease_ends});
  first.actor = plan.replica.servers;
  first.time = plan.replica.lease + milliseconds(random.between(0, 3000));
  first.nth = unsigned(random.between(1, 3));
  const Duration served = first.at + 2 * plan.replica.lease;  // by the next one, nearly always
  Move second = first;
  second.nth = 0;
  second.kind = random.chance(2) ? MoveKind::server_crash : MoveKind::hand_over;
  second.at = served + milliseconds(random.between(500, 3000));
  ask_around(random, plan, usual, first.at, first.at + milliseconds(500));
  ask_around(random, plan, usual, served - milliseconds(500), second.at);
  ask_around(random, plan, usual, second.at, second.at + milliseconds(2500));
  plan.moves.push_back(first);
  plan.moves.push_back(second);
}

// The leader's lease ends and it does not hear of it: for a while two believe that they lead, and everybody
// asks about the same, now the one and now the other.
void lead_both(Random& random, Plan& plan, const std::vector<Move>& usual) {
  Move move;
  move.kind = MoveKind::lease_ends;
  move.at = Duration(random.between(milliseconds(1500) / Duration(1), kLength.count()));
  move.actor = plan.replica.servers;
  move.reset = true;
  move.time = plan.replica.lease;
  plan.moves.push_back(move);
  if (usual.empty()) return;
  const Move about = random.of(usual);
  for (int left = 16; left > 0; --left) {
    Move asked = random.of(usual);
    asked.kind = random.of<MoveKind>({MoveKind::status, MoveKind::status, MoveKind::lock, MoveKind::unlock});
    asked.type = about.type;
    asked.resource = about.resource;
    asked.at = move.at + milliseconds(random.between(-500, 2500));
    plan.moves.push_back(asked);
  }
}

// Clocks are right: tokens and event ids of a restored store go on with them.
void restore_a_backup(Random& random, Plan& plan, const std::vector<Move>& usual) {
  std::ranges::fill(plan.replica.wall_skews, Duration(0));
  Move move;
  move.kind = MoveKind::backup;
  move.at = Duration(random.between(milliseconds(500) / Duration(1), kLength.count() * 2 / 3));
  plan.moves.push_back(move);
  move.kind = MoveKind::restore;
  move.at = Duration(random.between(move.at.count(), kLength.count()));
  move.time = milliseconds(random.between(1, 1500));
  ask_around(random, plan, usual, move.at, kLength + milliseconds(6000));
  plan.moves.push_back(move);
}

// Nobody asks for anything, and the leader's key is deleted: it must find out by itself.
void leave_in_peace(Random& random, Plan& plan) {
  Move move;
  move.kind = MoveKind::lease_ends;
  move.at = Duration(random.between(milliseconds(1000) / Duration(1), kLength.count()));
  move.actor = plan.replica.servers;
  move.time = milliseconds(random.of<int>({1000, 1001}));  // its lease ends, or the key alone goes
  plan.moves = {move};
}

}  // namespace

Plan make_replicated_plan(uint64_t seed) {
  Plan plan = make_plan(seed);
  std::erase_if(plan.moves, [](const Move& move) { return move.kind > MoveKind::library; });
  for (Move& move : plan.moves) move.at *= kSlower;
  Random random(seed * 0x9e3779b97f4a7c15 + 1);
  ReplicaWishes& wishes = plan.replica;
  wishes.servers = unsigned(random.between(2, 3));
  wishes.lease = seconds(random.between(2, 3));
  wishes.etcd_errs_one_in = random.of<unsigned>({0, 6, 15, 60, 200});
  wishes.etcd_is_late = random.chance(3);
  wishes.journal.call_timeout = milliseconds(random.of<int>({200, 500}));
  // Often so small that a batch takes several transactions, between which its writer may end.
  const bool small = random.chance(2);
  wishes.journal.key_bytes = small ? 40 : random.of<size_t>({300, 120 * 1024});
  wishes.journal.transaction_keys = small ? 1 : random.of<size_t>({2, 100});
  wishes.journal.full_batch_bytes = random.of<size_t>({200, 100 * 1024});
  wishes.journal.transaction_bytes = random.of<size_t>({400, 1'000'000});
  wishes.journal.chunk_bytes = random.of<size_t>({200, 1'000'000});
  wishes.journal.snapshot_after_keys = random.of<uint64_t>({1, 1, 5, 20, 1000});
  const bool skewed = random.chance(3);
  for (unsigned i = 0; i < wishes.servers; ++i) {
    wishes.wall_skews.push_back(skewed ? milliseconds(random.between(-3000, 3000)) : milliseconds(0));
    wishes.clock_rates.push_back(random.chance(3) ? 0.9 + 0.02 * double(random.below(11)) : 1.0);
  }
  const std::vector<Move> usual = plan.moves;
  for (int64_t left = random.between(1, 8); left > 0; --left) {
    const Move weather = random_weather(random, wishes.servers);
    plan.moves.push_back(weather);
    ask_around(random, plan, usual, weather.at, weather.at + milliseconds(2500));
  }
  if (random.chance(4)) strike_twice(random, plan, usual);
  if (random.chance(6)) lead_both(random, plan, usual);
  if (random.chance(12)) restore_a_backup(random, plan, usual);
  if (random.chance(25)) leave_in_peace(random, plan);
  std::ranges::stable_sort(plan.moves, {}, &Move::at);
  return plan;
}

}  // namespace turnstile::sim
