// One simulated server of several: the real Replica, etcd journal, Service, gate and handlers, on simulated
// loops, with strands for threads and the fake etcd for a store.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fake_etcd.h"
#include "plan.h"
#include "replica/replica.h"
#include "sim_server.h"

namespace turnstile::sim {

// Threads: one. Invariant: nothing of a process that has crashed happens any more, but for what it had sent.
class ReplicatedServer {
 public:
  ReplicatedServer(unsigned index, const ServerSettings& settings, const ReplicaWishes& wishes,
                   FakeEtcd& etcd, Schedule& schedule, Rare& rare);
  ~ReplicatedServer();

  void start();
  void crash();
  // SIGTERM: another may lead at once. `on_ended`: the process is no more.
  void hand_over(std::function<void()> on_ended);
  void pause(Duration time);
  void set_clock(Duration by) { wall_skew_ += by; }
  void set_drift(double rate) { rate_ = rate; }
  void take_it_easy() { house_every_ = std::chrono::milliseconds(200); }

  bool is_up() const { return process_ != nullptr; }
  bool serves() const;
  // Whether it serves the life of the state that it serves now, whenever that is asked, and has been awake.
  std::function<bool()> serving_on() const;
  std::string state() const;  // for people
  LinkPtr connect(Remote& remote);

  size_t lanes_in_use();
  size_t listeners();
  std::set<uint64_t> loaded_tokens();
  // A life has been loaded, and is about to serve; or could not be, and why.
  std::function<void()> on_begun;
  std::function<void(const std::string&)> on_not_begun;
  std::function<void()> on_ended;
  // An answer left a server that has slept for longer than its lease, and has not been elected since.
  std::function<void(uint64_t stamp)> on_late_answer;

 private:
  struct Process;
  void write_journal(Process& process);
  void keep_house(Process& process, uint64_t life);
  void take_snapshots(Process& process);

  const unsigned index_;
  const ServerSettings settings_;
  const ReplicaWishes wishes_;
  FakeEtcd& etcd_;
  Schedule& schedule_;
  Rare& rare_;
  Duration wall_skew_{};
  double rate_ = 1;
  Duration house_every_{std::chrono::milliseconds(20)};
  Process* process_ = nullptr;                       // the one that runs
  std::vector<std::unique_ptr<Process>> processes_;  // all there ever were: something may still be under way
};

}  // namespace turnstile::sim
