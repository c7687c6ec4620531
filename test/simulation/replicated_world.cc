// Plays a plan with several servers on one etcd, and judges it by the same rules as with one.
#include <fmt/format.h>

#include <algorithm>

#include "driver.h"
#include "replicated_server.h"

namespace turnstile::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string url_of(unsigned index) { return fmt::format("http://s{}", index); }

class ReplicatedWorld final : public Driver {
 public:
  ReplicatedWorld(const Plan& plan, bool with_trace) : Driver(plan, with_trace), etcd_(schedule_, rare_) {
    etcd_.set_error_rate(plan.replica.etcd_errs_one_in);
    etcd_.set_lates(plan.replica.etcd_is_late);
    for (unsigned i = 0; i < plan.replica.servers; ++i) add_server(i);
  }

 private:
  std::vector<std::string> servers() const override {
    std::vector<std::string> urls;
    for (unsigned i = 0; i < servers_.size(); ++i) urls.push_back(url_of(i));
    return urls;
  }
  void take_it_easy() override {
    for (const auto& server : servers_) server->take_it_easy();
  }
  size_t lanes_in_use() override {
    size_t lanes = 0;
    for (const auto& server : servers_)
      if (server->serves()) lanes += server->lanes_in_use();
    return lanes;
  }
  size_t listeners() override {
    size_t listeners = 0;
    for (const auto& server : servers_)
      if (server->serves()) listeners += server->listeners();
    return listeners;
  }
  void start_servers() override {
    for (const auto& server : servers_) server->start();
    schedule_.run_until(Schedule::kStart + milliseconds(200));
  }

  Judged judged() const override {
    const bool skewed =
        std::ranges::any_of(plan_.replica.wall_skews, [](Duration each) { return each.count() != 0; });
    return {history_,      plan_.server.engine,
            disturbances_, Schedule::kStart,
            true,          skewed ? Schedule::kStart : kNever,
            skewed,        take_overs_,
            restored_};
  }

  void add_server(unsigned index) {
    auto server =
        std::make_unique<ReplicatedServer>(index, plan_.server, plan_.replica, etcd_, schedule_, rare_);
    server->set_clock(plan_.replica.wall_skews[index]);
    server->set_drift(plan_.replica.clock_rates[index]);
    ReplicatedServer* const made = server.get();
    made->on_begun = [this, made, index] { begun(*made, index); };
    made->on_not_begun = [this, index](const std::string& why) {
      schedule_.note(fmt::format("s{} cannot serve: {}", index, why));
      if (why.find("damaged") != std::string::npos || why.find("missing") != std::string::npos)
        violation(fmt::format("s{} cannot serve: {}", index, why));
    };
    made->on_late_answer = [this](uint64_t stamp) { history_.late.insert(stamp); };
    made->on_ended = [this, index] {
      schedule_.note(fmt::format("s{} leads no longer", index));
      disturbed_since_ = std::min(disturbed_since_, schedule_.now());
    };
    servers_.push_back(std::move(server));
  }

  // S31: what was told is known to whoever leads next.
  void begun(ReplicatedServer& server, unsigned index) {
    schedule_.note(fmt::format("s{} leads", index));
    leader_ = index;
    disturb(std::min(disturbed_since_, schedule_.now()), schedule_.now() + seconds(1));
    disturbed_since_ = kNever;
    // Who was elected and has lost that before it had read everything may begin, but nothing will leave it.
    if (etcd_.value("t/leader") != url_of(index)) return;
    take_overs_.push_back(schedule_.now());
    if (!restored_) check_loaded(server.loaded_tokens());
  }

  // Most clients know who leads; some ask anybody.
  LinkPtr connect(Remote& remote, std::string_view name) override {
    for (unsigned i = 0; i < servers_.size(); ++i)
      if (name == url_of(i)) return servers_[i]->connect(remote);
    std::vector<ReplicatedServer*> leads, up;
    for (const auto& server : servers_) {
      if (server->is_up()) up.push_back(server.get());
      if (server->serves()) leads.push_back(server.get());
    }
    if (!leads.empty() && !schedule_.random.chance(8)) return schedule_.random.of(leads)->connect(remote);
    return up.empty() ? nullptr : schedule_.random.of(up)->connect(remote);
  }

  void make_weather(const Move& move) override {
    if (move.nth == 0) return strike(move);
    etcd_.behind_log_write(move.nth, [this, &move] {
      ++rare_["strikes between a write and its answer"];
      schedule_.note("strikes: " + show(move));
      strike(move);
    });
  }

  void strike(const Move& move) {
    const unsigned index = move.actor < servers_.size() ? move.actor : leader_;
    ReplicatedServer& server = *servers_[index];
    disturb(schedule_.now(), schedule_.now() + move.time + seconds(1));
    disturbed_since_ = std::min(disturbed_since_, schedule_.now());
    switch (move.kind) {
      case MoveKind::server_crash:
        ++crashes_;
        server.crash();
        return schedule_.after(move.time, [&server] { server.start(); });
      case MoveKind::server_pause:
        return server.pause(move.time);
      case MoveKind::cut:
        etcd_.cut(index, move.reset ? FakeEtcd::Cut::answers : FakeEtcd::Cut::both);
        return schedule_.after(move.time, [this, index] { etcd_.cut(index, FakeEtcd::Cut::none); });
      case MoveKind::etcd_stall:
        return etcd_.stall_until(schedule_.now() + std::min<Duration>(move.time, milliseconds(2500)));
      case MoveKind::etcd_full:
        return etcd_.full_until(schedule_.now() + std::min<Duration>(move.time, milliseconds(2500)));
      case MoveKind::lease_ends:
        if (to_ms(move.time) % 2 == 0)
          etcd_.end_lease_of("t/leader");
        else
          erase_leaders_key();
        if (!move.reset) return;
        // ... and the leader does not hear of it.
        etcd_.cut(leader_, FakeEtcd::Cut::both);
        return schedule_.after(move.time, [this, index = leader_] { etcd_.cut(index, FakeEtcd::Cut::none); });
      case MoveKind::backup:
        return etcd_.back_up();
      case MoveKind::restore:
        return restore(move.time);
      default:
        return server.hand_over(
            [this, &server, time = move.time] { schedule_.after(time, [&server] { server.start(); }); });
    }
  }

  // S44. Whoever has nothing to write must notice it, too: it looks with every renewal of its lease.
  void erase_leaders_key() {
    for (unsigned i = 0; i < servers_.size(); ++i)
      if (etcd_.value("t/leader") == url_of(i))
        schedule_.after(2 * plan_.replica.lease + seconds(2),
                        [this, i, leads_on = servers_[i]->serving_on()] {
                          if (leads_on())
                            violation(fmt::format("s{} leads on although its key was deleted", i));
                        });
    etcd_.erase_by_hand("t/leader");
  }

  // As docs/replication.md says it is to be done: with the servers stopped.
  void restore(Duration down) {
    for (const auto& server : servers_) server->crash();
    if (etcd_.restore()) {
      restored_ = true;
      ++rare_["etcd restored from a backup"];
    }
    for (const auto& server : servers_) schedule_.after(down, [&server] { server->start(); });
  }

  // Within two leases somebody leads.
  void heal() override {
    etcd_.set_error_rate(0);
    etcd_.forget_ambushes();
    for (unsigned i = 0; i < servers_.size(); ++i) etcd_.cut(i, FakeEtcd::Cut::none);
    schedule_.run_until(schedule_.now() + seconds(7));  // what lasts longest
    for (const auto& server : servers_) server->start();
    disturb(schedule_.now() - seconds(7), schedule_.now() + seconds(1));
    schedule_.run_until(schedule_.now() + 3 * plan_.replica.lease + seconds(3));
    if (leaders() == 1) return;
    std::string states;
    for (const auto& server : servers_) states += "; " + server->state();
    violation(fmt::format("{} servers lead when all is well again{}", leaders(), states));
  }

  size_t leaders() const {
    return size_t(std::ranges::count_if(servers_, [](const auto& each) { return each->serves(); }));
  }

  // Strands end before what they use.
  void shut_down() override {
    for (const auto& server : servers_) server->crash();
    schedule_.run_until(schedule_.now() + milliseconds(10));
  }

  FakeEtcd etcd_;
  std::vector<std::unique_ptr<ReplicatedServer>> servers_;
  std::vector<Time> take_overs_;
  Time disturbed_since_ = Schedule::kStart;
  unsigned leader_ = 0;  // the last one
  bool restored_ = false;
};

}  // namespace

Outcome play_replicated(const Plan& plan, bool with_trace) { return ReplicatedWorld(plan, with_trace).run(); }

}  // namespace turnstile::sim
