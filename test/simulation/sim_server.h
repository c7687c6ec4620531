// One simulated server: the real Service, gate, handlers and journal, on simulated loops and a simulated
// disk. It can crash, be started again, be paused, and begin a new life while its connections stay.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "disk.h"
#include "engine/settings.h"
#include "schedule.h"
#include "server/common.h"
#include "server/loop_handler.h"
#include "service/service.h"
#include "wires.h"

namespace turnstile::sim {

// What a history is played on.
struct ServerSettings {
  EngineSettings engine;
  unsigned loops = 2;
  FileJournalOptions journal;
  size_t stream_backlog = 2048;
};

// Metrics take long to make, and no rule depends on them: all histories of a run share what loops have in
// common.
Common& common_of_all();
std::unique_ptr<Common> make_common();

// Threads: one. Invariant: nothing of a process that has crashed happens any more.
class SimServer {
 public:
  SimServer(const ServerSettings& settings, Schedule& schedule, Rare& rare);
  ~SimServer();

  // Loads what the disk has. Empty: it runs; else why it did not start.
  std::string start();
  // The machine loses its power; the disk keeps what was synced, and of the rest what the seed decides.
  void crash();
  bool is_up() const { return up_; }
  bool serves() const;  // and has a state
  // Drops the state and loads it again, while process and connections stay; `on_begun` is told as by start().
  void change_life(std::function<void(std::string)> on_begun);
  // SIGSTOP, and SIGCONT later.
  void pause(Duration time);
  void set_slow_disk(Duration longest_sync) { weather_.longest_sync = longest_sync; }
  // Nothing much happens any more: look less often for what has run out.
  void take_it_easy() { house_every_ = std::chrono::milliseconds(200); }
  void fail_next_sync() { weather_.next_sync_fails = true; }

  // A connection to a loop that the seed chooses; none: there is no server.
  LinkPtr connect(Remote& remote);

  // For the last check: what the engine still knows of.
  size_t lanes_in_use();
  size_t listeners();  // that events are looked up for
  size_t resources();
  // The tokens of all holds, as just loaded.
  std::set<uint64_t> loaded_tokens();
  // A write failed in this life, and nobody could know what it had come to (S32).
  std::function<void()> on_failed;

 private:
  struct Process;
  void want_journal();
  void write_journal();
  void keep_house();
  void look_after_snapshot();
  std::string make_service(Process& process);
  void begin_life();
  void begin_house();
  void begin_next_life(const std::function<void(std::string)>& on_begun);
  void on_each_loop(const std::function<void(LoopHandler&)>& task, std::function<void()> next);
  // `what` happens then, unless this life of the state is over.
  void in_life(Duration delay, std::function<void()> what);
  void bury();

  const ServerSettings settings_;
  Schedule& schedule_;
  Rare& rare_;
  testing::SimulatedDisk disk_;
  DiskWeather weather_;
  std::unique_ptr<Process> process_;
  std::vector<std::unique_ptr<Process>> dead_;  // until nothing of theirs is on the stack
  Duration house_every_{std::chrono::milliseconds(20)};
  bool up_ = false;
  uint64_t life_ = 0;
};

}  // namespace turnstile::sim
