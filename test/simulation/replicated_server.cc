#include "replicated_server.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace turnstile::sim {
namespace {

using std::chrono::milliseconds;

constexpr Duration kTickEvery = milliseconds(250), kSnapshotEvery = milliseconds(300);
constexpr Duration kLong = std::chrono::hours(1);  // until somebody wakes it

// What the loops of a server have in common: as common_of_all(), one for each.
Common& common_of(unsigned server) {
  static std::map<unsigned, std::unique_ptr<Common>> made;
  std::unique_ptr<Common>& common = made[server];
  if (!common) common = make_common();
  return *common;
}

}  // namespace

// What a crash takes away.
struct ReplicatedServer::Process final : ReplicaOwner, TimeSource {
  explicit Process(ReplicatedServer& of) : server(of), common(common_of(of.index_)), host(of.schedule_) {
    common.set_standing({.replicated = true, .in_step = false, .leader = {}});
  }

  // Its clocks: the wall's is wrong, and that of its term goes at a rate of its own. For a process that is
  // dead all time is over, so that whatever it is in the middle of comes to an end.
  Time wall() const override { return server.schedule_.now() + server.wall_skew_; }
  Duration steady() const override {
    return server.schedule_.steady();
  }  // of leases, which clients measure, too
  Duration boot() const override {
    const Duration passed = server.schedule_.now() - Schedule::kStart;
    const Duration mine(Duration::rep(double(passed.count()) * server.rate_));
    return std::chrono::hours(1) + mine + (host.dead ? Duration(std::chrono::hours(100'000)) : Duration(0));
  }

  Result<void> begin_life(std::unique_ptr<Journal> journal) override;
  void end_life() override;
  // As App does.
  void tell(const ReplicaView& view) override {
    if (host.dead) return;
    const bool names_itself = view.role == ReplicaRole::leader;
    common.set_standing(
        {.replicated = true, .in_step = view.in_step, .leader = names_itself ? std::string() : view.leader});
  }
  bool follows() const override { return true; }
  void follow(const Record& record) override {
    if (!followed_state) followed_state = std::make_unique<LoadedState>(server.settings_.engine);
    followed_state->load(record);
  }
  void followed(Time latest) override {
    if (followed_state) followed_state->passed(latest);
  }
  void forget_followed() override {
    if (followed_state) ++server.rare_["standbys that began anew"];
    followed_state.reset();
  }

  void want_journal();
  // Runs it on each loop, and waits.
  void on_each_loop(const std::function<void(LoopHandler&)>& task);
  void wait_for(const std::function<bool()>& condition) {
    while (!host.dead && !condition()) Strand::current()->sleep(Duration(200));
  }

  ReplicatedServer& server;
  Common& common;
  StrandHost host;
  std::vector<std::unique_ptr<SimLoop>> loops;
  std::vector<LoopHandler*> handlers;
  std::function<bool()> turn;  // of the journal
  Effects effects;
  Time next_tick{};
  Time asleep_since{}, overslept = kNever;  // from when on a term that it was in before is over by any clock
  uint64_t life = 0;
  bool serving = false, journal_wanted = false, journal_busy = false, stopping = false;
  Strand *turner = nullptr, *writer = nullptr;
  std::unique_ptr<etcd::Client> client;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<LoadedState> followed_state;
  std::unique_ptr<Service> service;  // destroyed first
};

ReplicatedServer::ReplicatedServer(unsigned index, const ServerSettings& settings,
                                   const ReplicaWishes& wishes, FakeEtcd& etcd, Schedule& schedule,
                                   Rare& rare)
    : index_(index), settings_(settings), wishes_(wishes), etcd_(etcd), schedule_(schedule), rare_(rare) {}

ReplicatedServer::~ReplicatedServer() = default;

void ReplicatedServer::start() {
  if (is_up()) return;
  Process* const process = processes_.emplace_back(std::make_unique<Process>(*this)).get();
  process_ = process;
  http::Limits limits;
  limits.max_stream_backlog = settings_.stream_backlog;
  limits.full_stream_timeout = limits.write_timeout = milliseconds(800);
  for (unsigned i = 0; i < settings_.loops; ++i) {
    auto loop = std::make_unique<SimLoop>(i, limits, schedule_, rare_);
    loop->on_turn = [process] { process->want_journal(); };
    loop->on_answer_left = [this, process](uint64_t stamp) {
      if (schedule_.now() >= process->overslept) on_late_answer(stamp);
    };
    auto handler = std::make_unique<LoopHandler>(process->common, *loop);
    process->handlers.push_back(handler.get());
    loop->set_handler(std::move(handler));
    process->loops.push_back(std::move(loop));
  }
  process->client = etcd_.connect(index_, process->host);
  ReplicaSettings settings;
  settings.prefix = "t";
  settings.name = fmt::format("s{}", index_);
  settings.url = fmt::format("http://s{}", index_);
  settings.lease = wishes_.lease;
  settings.journal = wishes_.journal;
  process->replica = std::make_unique<Replica>(*process->client, settings, *process,
                                               EtcdTiming{*process, [](Duration time) {
                                                            if (Strand* const strand = Strand::current())
                                                              strand->sleep(time);
                                                          }});
  process->replica->journal_by_hand = &process->turn;
  process->host.start([process] {
    while (!process->host.dead && !process->stopping) {
      const Duration time = process->replica->turn();
      if (!process->host.dead && !process->stopping) Strand::current()->idle(std::max(time, Duration(20)));
    }
  });
  process->turner = process->host.strands.back().get();
  process->replica->on_hurry = [process] { process->turner->wake(); };
  process->host.start([process] {
    while (!process->host.dead)
      Strand::current()->sleep(std::max(process->replica->keep_lease(), Duration(20)));
  });
  process->host.start([this, process] { write_journal(*process); });
  process->writer = process->host.strands.back().get();
  process->host.start([this, process] { take_snapshots(*process); });
}

Result<void> ReplicatedServer::Process::begin_life(std::unique_ptr<Journal> journal) {
  if (host.dead) return fail("the process has ended");
  if (followed_state) ++server.rare_["take-overs by who has applied the log"];
  Result<std::unique_ptr<Service>> made = Service::begin(
      server.settings_.engine, std::move(journal), server.settings_.loops, common.metrics(),
      [this](const Error& error) { replica->doubt(error.message); }, *this,
      std::exchange(followed_state, nullptr));
  if (!made) {
    server.on_not_begun(made.error().message);
    return std::unexpected(made.error());
  }
  service = *std::move(made);
  overslept = kNever;
  if (host.dead) return fail("the process has ended");
  ++server.rare_["terms"];
  if (service->loaded().engine.waiters > 0) ++server.rare_["take-overs with waiters"];
  if (server.on_begun) server.on_begun();
  for (unsigned i = 0; i < server.settings_.loops; ++i) service->attach(i, *handlers[i]);
  on_each_loop([this](LoopHandler& handler) { handler.begin_life(*service); });
  serving = true;
  server.schedule_.after(server.house_every_, [this, now = ++life] { server.keep_house(*this, now); });
  want_journal();
  return {};
}

// As App::end_life() does it. Who writes must have come back before the journal goes.
void ReplicatedServer::Process::end_life() {
  if (!service) return;
  serving = false;
  ++life;
  if (server.on_ended) server.on_ended();
  service->detach();
  on_each_loop([](LoopHandler& handler) { handler.end_life(); });
  wait_for([this] { return !journal_busy; });
  if (!host.dead) service.reset();
}

void ReplicatedServer::Process::on_each_loop(const std::function<void(LoopHandler&)>& task) {
  auto left = std::make_shared<size_t>(handlers.size());
  for (LoopHandler* const handler : handlers)
    handler->post([handler, task, left] {
      task(*handler);
      --*left;
    });
  wait_for([left] { return *left == 0; });
}

void ReplicatedServer::Process::want_journal() {
  if (!serving || std::exchange(journal_wanted, true)) return;
  writer->wake();
}

void ReplicatedServer::write_journal(Process& process) {
  while (!process.host.dead) {
    if (!process.serving) process.journal_wanted = false;  // begin_life() says so again
    if (process.journal_busy || !std::exchange(process.journal_wanted, false)) {
      Strand::current()->idle(process.journal_wanted ? Duration(300) : kLong);
      continue;
    }
    Strand::current()->sleep(Duration(schedule_.random.between(1, 300)));
    if (!process.serving || process.journal_busy || process.host.dead) continue;
    process.journal_busy = true;
    if (process.turn()) process.journal_wanted = true;
    process.journal_busy = false;
  }
}

void ReplicatedServer::take_snapshots(Process& process) {
  while (!process.host.dead) {
    Strand::current()->sleep(kSnapshotEvery);
    if (!process.serving || process.journal_busy || process.host.dead) continue;
    if (!process.service->journal().wants_snapshot()) continue;
    process.journal_busy = true;
    process.service->take_snapshot({});
    process.journal_busy = false;
    ++rare_["snapshots in etcd"];
    process.want_journal();
  }
}

void ReplicatedServer::keep_house(Process& process, uint64_t life) {
  if (process.life != life || process.host.dead || !process.serving) return;
  schedule_.after(house_every_, [this, &process, life] { keep_house(process, life); });
  if (process.host.paused_until > schedule_.now()) return;
  while (process.service->expire_some(process.effects)) {
  }
  if (schedule_.now() >= process.next_tick) {
    process.service->tick();
    process.next_tick = schedule_.now() + kTickEvery;
  }
  process.want_journal();
}

void ReplicatedServer::crash() {
  if (!is_up()) return;
  Process& process = *std::exchange(process_, nullptr);
  if (process.journal_busy) ++rare_["crashes while the journal was writing"];
  if (process.serving && on_ended) on_ended();
  process.serving = false;
  ++process.life;
  for (const auto& loop : process.loops) loop->die();
  if (process.service) process.service->detach();
  process.host.die();
}

void ReplicatedServer::hand_over(std::function<void()> on_over) {
  if (!is_up() || process_->stopping) return;
  Process* const process = process_;
  process->stopping = true;
  ++rare_["planned hand-overs"];
  process->host.start([this, process, on_over = std::move(on_over)] {
    process->wait_for([process] { return process->turner->finished(); });
    if (!process->host.dead) process->end_life();
    if (!process->host.dead) process->replica->hand_over();
    if (process == process_) crash();
    on_over();
  });
  process->turner->wake();
}

void ReplicatedServer::pause(Duration time) {
  if (!is_up()) return;
  const Time now = schedule_.now();
  if (process_->host.paused_until <= now) process_->asleep_since = now;
  process_->host.paused_until = now + time;
  if (process_->overslept > now) {
    const Duration asleep = process_->host.paused_until - process_->asleep_since;
    const bool too_long = Duration(Duration::rep(double(asleep.count()) * rate_)) > wishes_.lease;
    process_->overslept = too_long ? process_->host.paused_until : kNever;
  }
  for (const auto& loop : process_->loops) loop->pause_until(process_->host.paused_until);
}

std::string ReplicatedServer::state() const {
  if (!is_up()) return fmt::format("s{} is down", index_);
  return fmt::format("s{}{}{}{}{}, term {}", index_, process_->serving ? " serves" : "",
                     process_->service ? " has a service" : "", process_->journal_busy ? " writes" : "",
                     process_->stopping ? " stops" : "", process_->replica->view().term);
}

bool ReplicatedServer::serves() const { return is_up() && process_->serving; }

std::function<bool()> ReplicatedServer::serving_on() const {
  if (!serves()) return [] { return false; };
  return [this, process = process_, life = process_->life] {
    return process == process_ && serves() && process->life == life &&
           process->host.paused_until + std::chrono::seconds(2) < schedule_.now();
  };
}

LinkPtr ReplicatedServer::connect(Remote& remote) {
  if (!is_up()) return nullptr;
  return process_->loops[schedule_.random.below(process_->loops.size())]->connect(remote);
}

size_t ReplicatedServer::lanes_in_use() {
  size_t count = 0;
  process_->service->engine().for_each_lane(
      [&](std::string_view, bool held, size_t waiters) { count += held || waiters > 0; });
  return count;
}

size_t ReplicatedServer::listeners() { return process_->service->router().count(); }

std::set<uint64_t> ReplicatedServer::loaded_tokens() {
  std::set<uint64_t> tokens;
  process_->service->engine().dump([&](const Record& record) {
    if (record.kind == RecordKind::hold_set) tokens.insert(record.number);
  });
  return tokens;
}

}  // namespace turnstile::sim
