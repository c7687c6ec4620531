#include "plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnstile::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLength{4000};  // of the part in which things happen

ServerSettings random_server(Random& random) {
  ServerSettings settings;
  EngineSettings& engine = settings.engine;
  engine.default_scope = random.chance(4) ? Scope::resource : Scope::operation;
  engine.server_keeps_references = !random.chance(6);
  engine.allow_multi_node_download = !random.chance(10);
  engine.retain_completed =
      random.of<Duration>({milliseconds(0), milliseconds(700), std::chrono::minutes(5)});
  engine.max_keep = random.of<Duration>({milliseconds(600), std::chrono::hours(1)});
  engine.retain_permanent_failure = random.of<Duration>({milliseconds(0), milliseconds(500), seconds(10)});
  engine.retain_released = random.of<Duration>({milliseconds(200), seconds(60)});
  engine.claim_timeout = random.of<Duration>({milliseconds(400), seconds(2), seconds(10)});
  engine.bond_grace = random.of<Duration>({milliseconds(50), milliseconds(500), seconds(3)});
  engine.max_hold = random.of<Duration>({seconds(2), seconds(20)});
  engine.stall_timeout = random.of<Duration>({milliseconds(0), milliseconds(0), milliseconds(800)});
  engine.most_told = random.chance(2) ? 1 : 500;
  engine.shards = random.chance(2) ? 1 : 32;
  settings.loops = unsigned(random.between(1, 4));
  settings.stream_backlog = random.of<size_t>({300, 2000, 64 * 1024});
  settings.journal.segment_bytes = random.of<uint64_t>({1500, 8000, 1 << 20});
  settings.journal.zero_ahead_bytes = random.of<uint64_t>({0, 0, 512, 4096});
  settings.journal.snapshot_after_bytes = random.of<uint64_t>({1000, 6000, 1 << 20});
  return settings;
}

// How often each kind comes, in a thousand.
struct Share {
  MoveKind kind;
  unsigned weight;
};
constexpr Share kShares[] = {
    {MoveKind::lock, 300},         {MoveKind::unlock, 210},
    {MoveKind::renew, 40},         {MoveKind::cancel, 30},
    {MoveKind::status, 70},        {MoveKind::break_hold, 12},
    {MoveKind::forget, 8},         {MoveKind::references, 40},
    {MoveKind::add_reference, 30}, {MoveKind::release_reference, 30},
    {MoveKind::release_node, 8},   {MoveKind::batch, 40},
    {MoveKind::list, 10},          {MoveKind::subscribe, 50},
    {MoveKind::close, 40},         {MoveKind::stop_reading, 10},
    {MoveKind::go_on_reading, 8},  {MoveKind::library, 40},
    {MoveKind::crash, 10},         {MoveKind::pause, 8},
    {MoveKind::slow_disk, 10},     {MoveKind::sync_fails, 4},
    {MoveKind::set_clock, 3},      {MoveKind::change_life, 3},
};

MoveKind random_kind(Random& random) {
  unsigned all = 0;
  for (const Share& share : kShares) all += share.weight;
  uint64_t at = random.below(all);
  for (const Share& share : kShares) {
    if (at < share.weight) return share.kind;
    at -= share.weight;
  }
  return MoveKind::lock;
}

Move random_move(Random& random, const Plan& plan, const std::vector<std::string>& types,
                 const std::vector<std::string>& resources) {
  Move move;
  move.kind = random_kind(random);
  move.at = Duration(random.between(0, Duration(kLength).count()));
  move.actor = unsigned(random.below(plan.actors));
  move.type = random.of(types);
  move.resource = random.of(resources);
  move.scope = random.chance(3) ? "" : random.chance(3) ? "resource" : "operation";
  move.again = random.chance(4);
  move.named = !random.chance(4);
  move.monitor = random.chance(types.size() == 1 ? 3 : 6);
  move.dereference = random.chance(3);
  move.reset = random.chance(2);
  move.progress = random.chance(3);
  move.token = random.chance(6)                           ? Which::none
               : random.chance(types.size() == 1 ? 3 : 8) ? Which::stale
                                                          : Which::right;
  move.how = random.chance(2) ? How::success : random.chance(4) ? How::for_good : How::failure;
  move.way = Way(random.below(4));
  if (random.chance(3)) move.lease = milliseconds(random.between(100, 1500));
  if (!random.chance(3)) move.wait = milliseconds(random.between(1, 2500));
  move.time = milliseconds(random.between(1, random.chance(3) ? 1500 : 200));
  if (random.chance(2)) move.keep = milliseconds(random.between(0, 3) * random.between(0, 900));
  move.result = random.chance(2);
  return move;
}

// Some things come together too seldom by themselves. Each is a lane's story, with a crash in it.
using Story = std::vector<std::pair<Duration, MoveKind>>;

void tell(Random& random, Plan& plan, const Story& story, Move about) {
  about.at = Duration(random.between(0, Duration(kLength).count() * 2 / 3));
  about.again = about.monitor = false;
  about.named = true;
  about.token = Which::right;
  about.how = How::success;
  about.wait = {};
  about.keep = milliseconds(random.between(500, 3000));
  for (const auto& [delay, kind] : story) {
    about.at += delay + Duration(random.between(0, 10'000));
    about.kind = kind;
    about.time = milliseconds(random.between(40, 200));
    plan.moves.push_back(about);
    if (kind == MoveKind::crash) about.actor = unsigned(random.below(plan.actors));  // who is surprised
  }
}

// A success that was forgotten stays so.
const Story kForgotten = {{milliseconds(0), MoveKind::lock},
                          {milliseconds(60), MoveKind::unlock},
                          {milliseconds(60), MoveKind::forget},
                          {milliseconds(60), MoveKind::crash},
                          {milliseconds(400), MoveKind::lock}};
// What is seen before it is safe may be lost.
const Story kSeenTooEarly = {{milliseconds(0), MoveKind::slow_disk},
                             {milliseconds(20), MoveKind::lock},
                             {milliseconds(5), MoveKind::status},
                             {milliseconds(15), MoveKind::crash},
                             {milliseconds(400), MoveKind::lock}};

}  // namespace

Plan make_plan(uint64_t seed) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.server = random_server(random);
  plan.actors = unsigned(random.between(2, 6));
  const bool crowded = random.chance(3);  // everybody wants the same
  const std::vector<std::string> types = crowded ? std::vector<std::string>{random.chance(2) ? "own" : "once"}
                                         : random.chance(3)
                                             ? std::vector<std::string>{"pull", "delete", "once"}
                                             : std::vector<std::string>{"pull", "update", "delete", "own"};
  std::vector<std::string> resources;
  for (int64_t i = crowded ? 1 : random.between(1, 3); i > 0; --i)
    resources.push_back("r" + std::to_string(i));
  for (int64_t left = random.between(20, 110); left > 0; --left) {
    plan.moves.push_back(random_move(random, plan, types, resources));
    // Who is granted something may go just then: that is rare by itself, and has rules of its own (S36).
    if (plan.moves.back().kind != MoveKind::unlock || !random.chance(4)) continue;
    Move close = random_move(random, plan, types, resources);
    close.kind = MoveKind::close;
    close.at = plan.moves.back().at + Duration(random.between(0, 6000));
    plan.moves.push_back(close);
  }
  if (random.chance(10)) tell(random, plan, kForgotten, random_move(random, plan, {"once"}, resources));
  if (random.chance(10)) tell(random, plan, kSeenTooEarly, random_move(random, plan, types, resources));
  std::ranges::stable_sort(plan.moves, {}, &Move::at);
  return plan;
}

std::string show(const Move& move) {
  static constexpr std::string_view names[] = {"lock",
                                               "unlock",
                                               "renew",
                                               "cancel",
                                               "status",
                                               "break",
                                               "forget",
                                               "references",
                                               "add reference",
                                               "drop reference",
                                               "release node",
                                               "batch",
                                               "list",
                                               "subscribe",
                                               "close",
                                               "stop reading",
                                               "go on reading",
                                               "library",
                                               "crash",
                                               "pause",
                                               "slow disk",
                                               "a sync fails",
                                               "set the clock",
                                               "change of life",
                                               "crash of a server",
                                               "pause of a server",
                                               "cut from etcd",
                                               "etcd stalls",
                                               "etcd is full",
                                               "the leader's lease ends",
                                               "hand-over",
                                               "backup of etcd",
                                               "etcd is restored"};
  std::string text = fmt::format("{:>9} {}", move.at.count(), names[size_t(move.kind)]);
  if (move.kind >= MoveKind::server_crash)
    return text + fmt::format(" (server {}, {} ms{})", move.actor, to_ms(move.time),
                              move.nth > 0 ? fmt::format(", behind write {} of the log", move.nth) : "");
  if (move.kind >= MoveKind::crash) return text + fmt::format(" ({} ms)", to_ms(move.time));
  text += fmt::format(" by n{}: {} {}", move.actor, move.type, move.resource);
  if (!move.scope.empty()) text += " scope=" + move.scope;
  if (move.again) text += " again";
  if (!move.named) text += " unnamed";
  if (move.monitor) text += " monitor";
  if (move.dereference) text += " dereference";
  if (move.token != Which::right) text += move.token == Which::none ? " no token" : " stale token";
  if (move.how != How::success) text += move.how == How::failure ? " failure" : " for good";
  if (move.lease.count() > 0) text += fmt::format(" lease={}ms", to_ms(move.lease));
  if (move.wait.count() > 0) text += fmt::format(" wait={}ms", to_ms(move.wait));
  if (move.keep.count() >= 0) text += fmt::format(" keep={}ms", to_ms(move.keep));
  if (move.result) text += " result";
  return text;
}

std::string show(const ServerSettings& settings) {
  const EngineSettings& engine = settings.engine;
  return fmt::format(
      "loops={} scope={} references={} multi={} retain_completed={}ms retain_permanent={}ms "
      "retain_released={}ms "
      "claim={}ms grace={}ms max_hold={}ms stall={}ms told={} segment={} zero_ahead={} snapshot_after={} "
      "backlog={} max_keep={}ms",
      settings.loops, engine.default_scope == Scope::resource ? "resource" : "operation",
      engine.server_keeps_references, engine.allow_multi_node_download, to_ms(engine.retain_completed),
      to_ms(engine.retain_permanent_failure), to_ms(engine.retain_released), to_ms(engine.claim_timeout),
      to_ms(engine.bond_grace), to_ms(engine.max_hold), to_ms(engine.stall_timeout), engine.most_told,
      settings.journal.segment_bytes, settings.journal.zero_ahead_bytes,
      settings.journal.snapshot_after_bytes, settings.stream_backlog, to_ms(engine.max_keep));
}

}  // namespace turnstile::sim
