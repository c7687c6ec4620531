#include "sim_server.h"

#include <utility>

#include "journal/file_journal.h"

namespace turnstile::sim {
namespace {

constexpr Duration kTickEvery = std::chrono::milliseconds(250);
constexpr Duration kSnapshotEvery = std::chrono::milliseconds(300);

}  // namespace

std::unique_ptr<Common> make_common() {
  Settings settings;
  settings.max_streams = SIZE_MAX / 2;  // those of a process that crashed are never closed
  auto common = std::make_unique<Common>(std::move(settings));
  common->on_metrics = [](Service*) { return std::string(); };
  return common;
}

Common& common_of_all() {
  static const std::unique_ptr<Common> shared = make_common();
  return *shared;
}

// What a crash takes away.
struct SimServer::Process {
  std::vector<std::unique_ptr<SimLoop>> loops;
  std::vector<LoopHandler*> handlers;
  std::function<bool()> turn;  // of the journal
  Effects effects;
  Time next_tick{}, paused_until{};
  bool journal_wanted = false, journal_busy = false, failed = false, changes = false;
  std::unique_ptr<Service> service;  // destroyed first: it posts to loops until it has ended
};

SimServer::SimServer(const ServerSettings& settings, Schedule& schedule, Rare& rare)
    : settings_(settings), schedule_(schedule), rare_(rare) {}

SimServer::~SimServer() {
  if (up_) crash();
  dead_.clear();
}

std::string SimServer::start() {
  weather_.life = ++life_;
  auto process = std::make_unique<Process>();
  if (std::string error = make_service(*process); !error.empty()) return error;
  http::Limits limits;
  limits.max_stream_backlog = settings_.stream_backlog;
  limits.full_stream_timeout = limits.write_timeout = std::chrono::milliseconds(800);  // histories are short
  for (unsigned i = 0; i < settings_.loops; ++i) {
    auto loop = std::make_unique<SimLoop>(i, limits, schedule_, rare_);
    loop->on_turn = [this] { want_journal(); };
    auto handler = std::make_unique<LoopHandler>(common_of_all(), *loop);
    process->handlers.push_back(handler.get());
    loop->set_handler(std::move(handler));
    process->loops.push_back(std::move(loop));
  }
  process_ = std::move(process);
  up_ = true;
  begin_life();
  return {};
}

std::string SimServer::make_service(Process& process) {
  weather_.quiet = true;
  std::unique_ptr<Journal> journal =
      make_file_journal(mount(disk_, weather_, schedule_), settings_.journal, &process.turn);
  Result<std::unique_ptr<Service>> service = Service::begin(
      settings_.engine, std::move(journal), settings_.loops, common_of_all().metrics(),
      [&process](const Error&) { process.failed = true; }, schedule_);
  weather_.quiet = false;
  if (!service) return service.error().message;
  process.service = *std::move(service);
  if (process.service->loaded().journal.cut_torn_tail) ++rare_["torn tails cut"];
  if (process.service->loaded().engine.waiters > 0) ++rare_["starts with waiters"];
  return {};
}

// Of a process that has just been made: nothing happens in its loops yet.
void SimServer::begin_life() {
  for (unsigned i = 0; i < settings_.loops; ++i) {
    process_->service->attach(i, *process_->handlers[i]);
    process_->handlers[i]->begin_life(*process_->service);
  }
  begin_house();
}

void SimServer::begin_house() {
  in_life(house_every_, [this] { keep_house(); });
  in_life(kSnapshotEvery, [this] { look_after_snapshot(); });
  want_journal();
}

// Runs `task(handler)` on each loop, and then `next`, unless the process has crashed by then.
void SimServer::on_each_loop(const std::function<void(LoopHandler&)>& task, std::function<void()> next) {
  auto left = std::make_shared<unsigned>(settings_.loops);
  for (LoopHandler* const handler : process_->handlers)
    handler->post([this, handler, task, next, left] {
      task(*handler);
      if (--*left == 0) schedule_.after(Duration(schedule_.random.between(1, 5000)), next);
    });
}

void SimServer::in_life(Duration delay, std::function<void()> what) {
  schedule_.after(delay, [this, life = life_, what = std::move(what)] {
    if (life == life_ && up_ && process_->service) what();
  });
}

// As App::end_life() and begin_life() do it: what a server will do that loses its store, and finds it again.
void SimServer::change_life(std::function<void(std::string)> on_begun) {
  if (!process_->service || process_->changes) return;
  process_->changes = true;
  process_->service->detach();
  on_each_loop([](LoopHandler& handler) { handler.end_life(); },
               [this, life = life_, on_begun] {
                 if (life == life_) begin_next_life(on_begun);
               });
}

void SimServer::begin_next_life(const std::function<void(std::string)>& on_begun) {
  // The journal, or whoever wants to begin, may be in the middle of a call.
  if (schedule_.depth() > 0 || process_->journal_busy)
    return schedule_.after(Duration(100), [this, life = life_, on_begun] {
      if (life == life_) begin_next_life(on_begun);
    });
  ++rare_["new lives in one process"];
  weather_.life = ++life_;
  process_->service.reset();
  process_->failed = process_->journal_wanted = false;
  if (schedule_.random.chance(2)) disk_.crash(schedule_.random.next());  // as a disk that failed may
  const std::string error = make_service(*process_);
  if (error.empty()) {
    for (unsigned i = 0; i < settings_.loops; ++i) process_->service->attach(i, *process_->handlers[i]);
    Service* const service = process_->service.get();
    on_each_loop([service](LoopHandler& handler) { handler.begin_life(*service); },
                 [this, life = life_] {
                   if (life == life_) begin_house();
                 });
    process_->changes = false;
  }
  on_begun(error);
}

void SimServer::crash() {
  if (!up_) return;
  up_ = false;
  weather_.life = ++life_;
  if (process_->journal_busy) ++rare_["crashes while the journal was writing"];
  for (const auto& loop : process_->loops) loop->die();
  if (process_->service) process_->service->detach();
  disk_.crash(schedule_.random.next());
  dead_.push_back(std::move(process_));
  schedule_.after(Duration(1), [this] { bury(); });
}

// The journal may be in the middle of one of its calls.
void SimServer::bury() {
  if (schedule_.depth() > 0) return schedule_.after(Duration(50), [this] { bury(); });
  dead_.clear();
}

void SimServer::pause(Duration time) {
  if (!up_) return;
  process_->paused_until = schedule_.now() + time;
  for (const auto& loop : process_->loops) loop->pause_until(process_->paused_until);
}

LinkPtr SimServer::connect(Remote& remote) {
  if (!up_) return nullptr;
  return process_->loops[schedule_.random.below(process_->loops.size())]->connect(remote);
}

void SimServer::want_journal() {
  if (!up_ || !process_->service || std::exchange(process_->journal_wanted, true)) return;
  const Time when = schedule_.now() + Duration(schedule_.random.between(1, 300));
  in_life(std::max(when, process_->paused_until) - schedule_.now(), [this] { write_journal(); });
}

void SimServer::write_journal() {
  process_->journal_wanted = false;
  if (process_->journal_busy) return;  // who is at it looks again
  Process* const process = process_.get();
  process->journal_busy = true;
  const bool wrote = process->turn();
  process->journal_busy = false;
  if (process == process_.get() && wrote) want_journal();
}

void SimServer::keep_house() {
  in_life(house_every_, [this] { keep_house(); });
  if (process_->paused_until > schedule_.now()) return;
  if (process_->changes) return;
  if (process_->failed) {
    if (schedule_.depth() == 0) on_failed();
    return;
  }
  while (process_->service->expire_some(process_->effects)) {
  }
  if (schedule_.now() >= process_->next_tick) {
    process_->service->tick();
    process_->next_tick = schedule_.now() + kTickEvery;
  }
  want_journal();
}

void SimServer::look_after_snapshot() {
  in_life(kSnapshotEvery, [this] { look_after_snapshot(); });
  Process* const process = process_.get();
  if (schedule_.depth() > 0 || process->journal_busy || process->paused_until > schedule_.now()) return;
  if (process->changes || process->failed || !process->service->journal().wants_snapshot()) return;
  process->journal_busy = true;
  process->service->take_snapshot({});
  process->journal_busy = false;
  ++rare_[process == process_.get() ? "snapshots" : "crashes during a snapshot"];
  want_journal();
}

bool SimServer::serves() const { return up_ && process_->service && !process_->changes; }

size_t SimServer::lanes_in_use() {
  size_t count = 0;
  process_->service->engine().for_each_lane(
      [&](std::string_view, bool held, size_t waiters) { count += held || waiters > 0; });
  return count;
}

size_t SimServer::listeners() { return process_->service->router().count(); }

size_t SimServer::resources() { return process_->service->engine().resource_count(); }

std::set<uint64_t> SimServer::loaded_tokens() {
  std::set<uint64_t> tokens;
  process_->service->engine().dump([&](const Record& record) {
    if (record.kind == RecordKind::hold_set) tokens.insert(record.number);
  });
  return tokens;
}

}  // namespace turnstile::sim
