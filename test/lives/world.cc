#include "world.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/plant.h"
#include "content/content_store.h"
#include "content/hasher.h"
#include "content/lock_arbiter.h"
#include "content/pause.h"
#include "content/write_session.h"
#include "fiber.h"
#include "sim_server.h"

namespace turnstile::lives {
namespace {

namespace fs = std::filesystem;
using namespace content;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr int kNodes = 3;
constexpr int kBlobs = 2;
constexpr auto kGuardedAgain = 25s;  // after a start, or when what was damaged was pulled again

struct Crashed {};  // thrown through whatever a killed plugin was at

Digest digest_of(const std::string& bytes) {
  Hasher hasher(Algorithm::sha256);
  hasher.update(bytes);
  return hasher.digest();
}

// On memory, where there is such a place: the disk itself is not what is tried here.
fs::path fresh_directory() {
  static const fs::path base = [] {
    const fs::path memory = "/dev/shm";
    std::error_code error;
    std::string name =
        (fs::is_directory(memory, error) ? memory : fs::temp_directory_path()) / "lives-XXXXXX";
    TS_CHECK(::mkdtemp(name.data()) != nullptr, "a directory can be made");
    static const struct Cleaner {
      fs::path path;
      ~Cleaner() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
      }
    } cleaner{name};
    return cleaner.path;
  }();
  static uint64_t last = 0;
  const fs::path path = base / std::to_string(++last);
  fs::create_directories(path);
  return path;
}

class World;
World* the_world = nullptr;

// One thread of a plugin, or of containerd beside it.
struct Task {
  int node;
  bool settles = false;  // the thread that tells the server what is used
  std::unique_ptr<sim::Fiber> fiber;
  uint64_t sleep = 0;  // the number of the sleep that it is in
};

struct Machine {
  std::string name;
  fs::path state;
  std::shared_ptr<Wire> wire;
  std::unique_ptr<ContentStore> store;  // none: it is down
  NodeState* rows = nullptr;
  std::set<int> told;     // blobs of which containerd was told that they are there
  bool released = false;  // by people, while it was down
  int generation = 0;
};

class World {
 public:
  World(uint64_t seed, bool wants_trace) : schedule_(seed), root_(fresh_directory()) {
    the_world = this;
    schedule_.wants_trace = wants_trace;
    server_.began = schedule_.now() - 1h;
    without_links_ = schedule_.random.chance(2);
    server_.delays = schedule_.random.chance(2);
    with_places_ = schedule_.random.chance(2);
    forgets_turns_ = with_places_ && schedule_.random.chance(2);
    damages_ = schedule_.random.chance(3);
    simulated_without_links = without_links_;
    the_pause = [](const char* where) { the_world->pause(where); };
    for (int i = 0; i < kBlobs; ++i) bytes_.push_back("blob " + std::to_string(i));
    for (const std::string& bytes : bytes_) digests_.push_back(digest_of(bytes));
    for (int i = 0; i < kNodes; ++i) {
      machines_[i].name = std::string(1, char('a' + i));
      machines_[i].state = fresh_directory();
    }
  }
  ~World() {
    the_pause = nullptr;
    simulated_without_links = false;
    std::error_code ignored;
    fs::remove_all(root_, ignored);
    for (const Machine& machine : machines_) fs::remove_all(machine.state, ignored);
  }

  Played play() {
    for (int i = 0; i < kNodes; ++i) start(i);
    const auto length = milliseconds(schedule_.random.between(30'000, 120'000));
    plan_accidents(length);
    run(length);
    heal();
    run(90s);
    check_uses("at the end");
    empty();
    // Not so long that what the server remembers for five minutes is forgotten.
    for (int i = 0; i < 20 && !has_settled(); ++i) run(10s);
    check_nothing_left();
    for (int i = 0; i < kNodes; ++i) stop(i);
    schedule_.note("end");
    return {std::move(violations_), std::move(counts_), schedule_.hash(), std::move(schedule_.trace)};
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point steady() const { return Clock::time_point(schedule_.now().time_since_epoch()); }

  // ---- Threads.

  void run(Duration time) {
    const Time end = schedule_.now() + time;
    while (schedule_.now() < end && violations_.empty())
      schedule_.run_until(std::min(end, schedule_.now() + 1s));
  }

  void begin(int node, std::function<void()> body, bool settles = false) {
    auto task = std::make_unique<Task>();
    Task* const at = task.get();
    at->node = node;
    at->settles = settles;
    at->fiber = std::make_unique<sim::Fiber>([body = std::move(body)] {
      try {
        body();
      } catch (const Crashed&) {
      }
    });
    tasks_.push_back(std::move(task));
    schedule_.after(0ms, [this, at, sleep = ++last_sleep_] {
      if (is_known(at)) resume(*at);
      (void)sleep;
    });
  }

  bool is_known(const Task* task) const {
    for (const auto& each : tasks_)
      if (each.get() == task) return true;
    return false;
  }

  void resume(Task& task) {
    Task* const before = std::exchange(current_, &task);
    task.fiber->resume();
    current_ = before;
    if (task.fiber->finished()) std::erase_if(tasks_, [&](const auto& each) { return each.get() == &task; });
    if (std::exchange(touched_, false)) check_uses("while it runs");
  }

  // From within a task.
  void sleep(Duration time) {
    Task& task = *current_;
    Machine& machine = machines_[task.node];
    const std::shared_ptr<Wire> wire = machine.wire;
    do {
      task.sleep = ++last_sleep_;
      schedule_.after(time, [this, at = &task, number = task.sleep] {
        if (is_known(at) && at->sleep == number) resume(*at);
      });
      task.fiber->wait();
      time = wire->stalled_until > schedule_.now() ? Duration(wire->stalled_until - schedule_.now())
                                                   : Duration{};
    } while (!wire->dead && time.count() > 0);
  }

  void pause(const char* where) {
    touched_ = true;
    if (current_ == nullptr || std::uncaught_exceptions() > 0) return;
    const std::shared_ptr<Wire> wire = machines_[current_->node].wire;
    if (wire->dead) throw Crashed{};
    if (schedule_.random.chance(2)) return;
    // A node that may be without second names must be able to say what it uses, soon after the server has
    // forgotten it.
    const bool may_last = server_.faults && !is_calm() && !(needs_counts() && current_->settles);
    // Few come so far as to remove a blob.
    const std::string_view at = where;
    const bool removes =
        at == "before a blob is put aside" || at == "behind it" || at == "before a blob is removed";
    const bool long_one = may_last && schedule_.random.chance(removes ? 8 : 25);
    if (long_one) count(std::string("stood still ") + where);
    const auto time =
        milliseconds(long_one ? schedule_.random.between(8'000, 30'000) : schedule_.random.between(0, 60));
    if (long_one && !needs_counts() && schedule_.random.chance(2))
      wire->stalled_until = schedule_.now() + time;
    note(machines_[current_->node].name + " pauses " + where + (long_one ? " for long" : ""));
    sleep(time);
    if (wire->dead) throw Crashed{};
  }

  // ---- Plugins.

  void start(int index) {
    Machine& machine = machines_[index];
    TS_CHECK(!machine.store, "a plugin is started when it is down");
    // What a killed plugin had sent lies in the server's buffers still.
    auto wire = std::make_shared<Wire>();
    if (machine.wire) wire->buffered = std::move(machine.wire->buffered);
    machine.wire = std::move(wire);
    machine.wire->node = machine.name;
    ++machine.generation;
    Outcome<std::unique_ptr<NodeState>> state = NodeState::open(machine.state);
    Outcome<BlobStore> blobs = BlobStore::open({root_, {}, machine.name, false});
    TS_CHECK(state.has_value() && blobs.has_value(), "a plugin can open its directories");
    LockArbiter::Options options;
    options.node = machine.name;
    options.places.most = with_places_ ? 10 : 0;
    options.places.now = [this] { return steady(); };
    options.places.start = [this, index](std::function<void()> body) {
      count("places kept");
      begin(index, [this, body = std::move(body)] {
        body();
        // While its turn lies there and nobody has come for it.
        if (forgets_turns_ && !healed_ && schedule_.random.chance(10))
          schedule_.after(milliseconds(schedule_.random.between(0, 1'000)), [this] {
            if (!healed_) lose_store();
          });
      });
      return WaitingPlaces::Thread();  // ended with the plugin's other threads
    };
    options.visible_within = 5s;
    options.without_server = schedule_.random.chance(3) ? WithoutServer::pull : WithoutServer::wait;
    options.now = [this] { return steady(); };
    Lives::Options lives;
    lives.now = options.now;
    auto metrics = std::make_shared<Metrics>();
    machine.rows = state->get();
    machine.store = std::make_unique<ContentStore>(
        std::move(*blobs), std::move(*state),
        std::make_unique<LockArbiter>(
            connect(server_, machine.wire, schedule_, [this](Duration time) { sleep(time); }),
            std::move(options)),
        metrics, lives);
    note(machine.name + " starts");
    if (damages_) all_guarded_ = std::max(all_guarded_, schedule_.now() + kGuardedAgain);
    const Outcome<void> started = machine.store->start();
    TS_CHECK(started.has_value(), "a plugin recovers");
    // What was released while it was down may be gone, or go before it has told that it uses it.
    if (std::exchange(machine.released, false)) machine.told.clear();
    // What was put away is forgotten at a start.
    for (const auto& [blob, file] : damaged_)
      if (!machine.rows->size_of(digests_[blob])) machine.told.erase(blob);
    ContentStore* const store = machine.store.get();
    begin(
        index,
        [this, store] {
          for (;;) {
            (void)store->lives().work();
            sleep(healed_ ? 1s : 250ms);
            if (machines_[current_->node].wire->dead) throw Crashed{};
          }
        },
        true);
    begin(index, [this, store, index] { be_containerd(*store, index); });
  }

  // kill -9: what its threads were at is never finished.
  void crash(int index) {
    Machine& machine = machines_[index];
    if (!machine.store) return;
    count("crashes");
    note(machine.name + " crashes");
    const fs::path copy = fresh_directory();
    for (const char* file : {"node.db", "node.db-wal"})
      if (fs::exists(machine.state / file)) fs::copy_file(machine.state / file, copy / file);
    end_tasks(index);
    machine.store.reset();
    std::error_code ignored;
    fs::remove_all(machine.state, ignored);
    machine.state = copy;
  }
  void end_tasks(int index) {
    machines_[index].wire->dead = true;
    for (;;) {
      const auto at =
          std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& task) { return task->node == index; });
      if (at == tasks_.end()) return;
      Task& task = **at;
      task.sleep = 0;
      Task* const before = std::exchange(current_, &task);
      task.fiber->resume();
      current_ = before;
      if (task.fiber->finished())
        std::erase_if(tasks_, [&](const auto& each) { return each.get() == &task; });
    }
  }
  void stop(int index) {
    if (!machines_[index].store) return;
    end_tasks(index);
    machines_[index].store.reset();
  }

  // ---- containerd.

  void be_containerd(ContentStore& store, int node) {
    while (!ending_) {
      const int blob = int(schedule_.random.below(kBlobs));
      if (!machines_[node].rows->size_of(digests_[blob])) {
        pull(store, node, blob);
      } else if (schedule_.random.chance(2)) {
        note(machines_[node].name + " removes " + std::to_string(blob));
        machines_[node].told.erase(blob);
        (void)store.remove(digests_[blob]);
        count("removals");
      }
      sleep(milliseconds(schedule_.random.between(0, 6'000)));
      if (machines_[node].wire->dead) throw Crashed{};
    }
  }

  void pull(ContentStore& store, int node, int blob) {
    const std::string ref = "default/1/layer-" + digests_[blob].text();
    const auto most = with_places_ ? schedule_.random.between(1, 8) : 8;
    for (int tries = 0; tries < most && !ending_; ++tries) {
      {
        WriteSession session(store);
        WriteMessage message;
        message.ref = ref;
        message.total = int64_t(bytes_[blob].size());
        const Outcome<WriteAnswer> opened = session.handle(message);
        if (opened) {
          pause("while a blob is downloaded");
          // So long that others wait for it, give up, and come again.
          if (with_places_ && opened->offset == 0 && !healed_ && schedule_.random.chance(2))
            sleep(milliseconds(schedule_.random.between(0, 30'000)));
          if (machines_[node].wire->dead) throw Crashed{};
          message.action = WriteAction::commit;
          message.offset = opened->offset;
          message.data = std::string_view(bytes_[blob]).substr(size_t(opened->offset));
          const Outcome<WriteAnswer> done = session.handle(message);
          note(machines_[node].name + (opened->offset > 0 ? " adopts " : " writes ") + std::to_string(blob) +
               ": " + (done ? "yes" : done.error().message));
          if (done) machines_[node].told.insert(blob);
          // It was put away while this node stood still, and the server has counted it instead.
          if (done && damages_ && !is_guarded(machines_[node], blob))
            all_guarded_ = std::max(all_guarded_, schedule_.now() + kGuardedAgain);
          count(!done ? "commits refused" : opened->offset > 0 ? "adoptions" : "writes");
          return;
        }
        note(machines_[node].name + " is told: " + opened.error().message);
      }
      const bool is_late = forgets_turns_ && schedule_.random.chance(4);
      sleep(milliseconds(is_late ? schedule_.random.between(3'000, 9'000)
                                 : schedule_.random.between(200, 2'000)));
      if (machines_[node].wire->dead) throw Crashed{};
    }
  }

  // ---- Accidents.

  void plan_accidents(Duration length) {
    const int accidents = int(schedule_.random.between(1, 7));
    for (int i = 0; i < accidents; ++i)
      schedule_.after(
          milliseconds(schedule_.random.between(0, std::chrono::duration_cast<milliseconds>(length).count())),
          [this] {
            if (!healed_) happen();
          });
  }

  void happen() {
    Random& random = schedule_.random;
    const int node = int(random.below(kNodes));
    if (damages_ && random.chance(3)) return damage(int(random.below(kBlobs)), node);
    switch (random.below(6)) {
      case 0:
        lose_store();
        break;
      case 1:
        note("the server is started anew");
        count("server restarts");
        if (is_calm()) return;
        server_.up = false;
        schedule_.after(milliseconds(random.between(100, 5'000)), [this] {
          if (server_.up) return;
          server_.up = true;
          server_.rules->begin_again(schedule_.now());
          begin_life();
        });
        break;
      case 2:
        if (is_calm()) return;
        note(machines_[node].name + " is cut off");
        count("cuts");
        machines_[node].wire->cut_until = schedule_.now() + milliseconds(random.between(1'000, 40'000));
        break;
      case 3:
      case 4:
        if (is_calm()) return;
        crash(node);
        schedule_.after(milliseconds(random.between(10, 30'000)), [this, node] {
          if (!machines_[node].store && !healed_) start(node);
        });
        break;
      case 5:
        if (machines_[node].store) return;
        note("people release " + machines_[node].name);
        count("nodes released");
        machines_[node].released = true;
        server_.rules->release_node(machines_[node].name, schedule_.now());
        break;
    }
  }
  // A disk changes a byte. A node finds that out and puts the file away, or whoever adopts it does.
  void damage(int blob, int node) {
    const fs::path path = published(blob);
    struct stat found;
    if (::stat(path.c_str(), &found) != 0) return;
    note("blob " + std::to_string(blob) + " is damaged");
    count("blobs damaged");
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path, std::ios::in | std::ios::binary) << "BLOB";
    damaged_[blob] = found.st_ino;
    if (schedule_.random.chance(2))
      schedule_.after(milliseconds(schedule_.random.between(0, 60'000)), [this] {
        if (!healed_) lose_store();
      });
    if (!machines_[node].store || schedule_.random.chance(3)) return;
    note(machines_[node].name + " puts it away");
    const BlobStore& blobs = machines_[node].store->blobs();
    if (const Outcome<OpenBlob> seen = blobs.find_published(digests_[blob]))
      TS_CHECK(blobs.put_damaged_away(digests_[blob], *seen).has_value(), "a file can be put away");
  }
  fs::path published(int blob) const {
    return root_ / "blobs" / "sha256" / std::string(digests_[blob].hex());
  }
  // Since somebody has pulled it again, nobody may lose it any more.
  void notice_healing() {
    for (auto each = damaged_.begin(); each != damaged_.end();) {
      struct stat found;
      const bool healed = ::stat(published(each->first).c_str(), &found) == 0 && found.st_ino != each->second;
      if (healed) {
        count("damaged blobs pulled again");
        all_guarded_ = schedule_.now() + kGuardedAgain;
      }
      each = healed ? damaged_.erase(each) : std::next(each);
    }
  }
  bool lacks_second_name(const Machine& machine, int blob) const {
    return damages_ && !without_links_ && schedule_.now() >= all_guarded_ && machine.store &&
           !damaged_.contains(blob) && !is_guarded(machine, blob);
  }
  bool is_guarded(const Machine& machine, int blob) const {
    return fs::exists(root_ / "uses" / machine.name / "sha256" / std::string(digests_[blob].hex()));
  }

  void lose_store() {
    note("the server loses its store");
    count("stores lost");
    // Nobody can save what a node uses without a second name, and is not there to say so in time.
    for (Machine& machine : machines_)
      for (const int blob : machine.told)
        if (!machine.store && !is_guarded(machine, blob)) machine.released = true;
    if (without_links_ || schedule_.now() < all_guarded_) {
      server_.calm_until = schedule_.now() + 40s;
      for (Machine& machine : machines_) {
        if (!machine.store) machine.released = true;
        machine.wire->cut_until = machine.wire->stalled_until = Time{};
      }
    }
    server_.rules = std::make_unique<ServerRules>();
    begin_life();
  }
  bool is_calm() const { return schedule_.now() < server_.calm_until; }
  bool needs_counts() const { return without_links_ || damages_; }
  void begin_life() {
    ++server_.life;
    server_.began = schedule_.now();
  }

  void heal() {
    note("all is well again");
    healed_ = true;
    server_.faults = false;
    if (!server_.up) {
      server_.up = true;
      server_.rules->begin_again(schedule_.now());
      begin_life();
    }
    for (int i = 0; i < kNodes; ++i) {
      if (!machines_[i].store) start(i);
      machines_[i].wire->cut_until = machines_[i].wire->stalled_until = Time{};
    }
  }

  void empty() {
    note("everybody removes everything");
    ending_ = true;
    run(60s);  // pulls under way
    for (int i = 0; i < kNodes; ++i)
      begin(i, [this, i] {
        machines_[i].told.clear();
        for (const Digest& digest : digests_) (void)machines_[i].store->remove(digest);
      });
  }

  bool has_settled() const {
    for (const Machine& machine : machines_)
      if (!machine.rows->is_empty()) return false;
    return true;
  }

  // ---- What must be true.

  bool lies_somewhere(int node, const Digest& digest) const {
    const fs::path blobs = root_ / "blobs" / "sha256";
    const std::string hex(digest.hex());
    std::error_code ignored;
    if (fs::exists(blobs / hex, ignored)) return true;
    if (fs::exists(root_ / "uses" / machines_[node].name / "sha256" / hex, ignored)) return true;
    for (const Machine& remover : machines_) {
      const std::string aside = ".leaving." + hex.substr(0, 32) + "." + remover.name;
      if (fs::exists(blobs / aside, ignored)) return true;  // it is brought back, or was ours to lose
      if (fs::exists(root_ / "uses" / machines_[node].name / "sha256" / aside, ignored)) return true;
    }
    return false;
  }

  void check_uses(const char* when) {
    if (!violations_.empty()) return;
    notice_healing();
    for (int node = 0; node < kNodes; ++node) {
      const Machine& machine = machines_[node];
      if (machine.released) continue;
      for (int blob = 0; blob < kBlobs; ++blob) {
        if (machine.told.contains(blob) && !damaged_.contains(blob) && !lies_somewhere(node, digests_[blob]))
          violate(machine.name + " uses blob " + std::to_string(blob) + ", and its file is gone, " + when);
        else if (machine.told.contains(blob) && lacks_second_name(machine, blob))
          violate(machine.name + " uses blob " + std::to_string(blob) + " without a second name, " + when);
      }
    }
  }

  void check_nothing_left() {
    if (!violations_.empty()) return;
    for (int node = 0; node < kNodes; ++node)
      for (const Digest& digest : digests_)
        if (machines_[node].rows->size_of(digest)) return count("pulled again at the end");
    if (server_.delayed > 0) return;  // a use that was told long after nobody waited for it stays counted
    for (int blob = 0; blob < kBlobs; ++blob) {
      if (!server_.rules->references(digests_[blob].text()).empty())
        violate("nobody uses blob " + std::to_string(blob) + ", and the server counts a node");
      for (const auto& entry : fs::recursive_directory_iterator(root_))
        if (entry.is_regular_file() && entry.path().parent_path() != root_ / "damaged" &&
            entry.path().filename().string().find(digests_[blob].hex().substr(0, 32)) != std::string::npos)
          violate("nobody uses blob " + std::to_string(blob) +
                  ", and its file is there: " + fs::relative(entry.path(), root_).string());
    }
    count("histories that left nothing");
  }

  void violate(const std::string& what) {
    note("VIOLATION: " + what);
    violations_.push_back(what);
  }
  void count(const std::string& what) { ++counts_[what]; }
  void note(const std::string& line) { schedule_.note(line); }

  using Random = sim::Random;
  Schedule schedule_;
  const fs::path root_;
  SimServer server_;
  bool touched_ = false;  // files, perhaps, since they were looked at
  bool without_links_ = false, with_places_ = false, forgets_turns_ = false, damages_ = false;
  bool healed_ = false, ending_ = false;
  std::map<int, ino_t> damaged_;  // blobs that were not pulled again since, and which file is damaged
  Time all_guarded_{};            // then every node that is there has a second name for all that it uses
  std::vector<std::string> bytes_;
  std::vector<Digest> digests_;
  Machine machines_[kNodes];
  std::list<std::unique_ptr<Task>> tasks_;
  Task* current_ = nullptr;
  uint64_t last_sleep_ = 0;
  std::vector<std::string> violations_;
  std::map<std::string, uint64_t> counts_;
};

}  // namespace

Played play(uint64_t seed, bool wants_trace) { return World(seed, wants_trace).play(); }

}  // namespace turnstile::lives
