// One server among several: who leads, who stands by, and how that changes hands.
//
// Consensus is etcd's. The leader's key is made by the election's transaction and bound to the lease of the
// server that made it; its revision is the term, and guards everything that the term writes.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sync.h"
#include "etcd/etcd.h"
#include "journal/etcd_image.h"
#include "journal/etcd_journal.h"
#include "journal/etcd_layout.h"
#include "replica/server_entry.h"

namespace turnstile {

enum class ReplicaRole : uint8_t { standby, leader };

// What others may know of the servers. A copy; as of a moment ago.
struct ReplicaView {
  struct Server {
    std::string name, url;
    bool leads = false;
    uint64_t lag_batches = 0;
    Time since{};
  };
  ReplicaRole role = ReplicaRole::standby;
  std::string leader;  // its URL; empty: nobody leads, or etcd is away
  etcd::Revision term = 0;
  bool in_step = false;  // a standby that has read nearly all there is, a moment ago
  uint64_t lag_batches = 0;
  uint64_t terms_led = 0;  // by this process
  std::string problem;     // why etcd is of no use at the moment; empty: it is
  std::vector<Server> servers;
};

struct ReplicaSettings {
  std::string prefix;
  std::string name;  // no two servers have the same
  std::string url;   // how others reach this server
  std::chrono::seconds lease{5};
  EtcdJournalOptions journal;
};

// What becoming and ceasing to be the leader means here. Called by whoever calls Replica::turn().
class ReplicaOwner {
 public:
  virtual ~ReplicaOwner() = default;
  // A standby's state. Records as they come, in order: the journal of begin_life() then has only what is
  // behind them. False: it wants none, and the journal has all.
  virtual bool follows() const { return false; }
  virtual void follow(const Record&) {}
  // Every step up to this time has been followed.
  virtual void followed(Time) {}
  // What was followed so far is worth nothing; what follows begins anew.
  virtual void forget_followed() {}

  // Begins to serve what was followed and what the journal has. An error: it could not, and another server
  // may try.
  virtual Result<void> begin_life(std::unique_ptr<Journal> journal) = 0;
  // Must not go on. Nothing leaves any more; callers whose outcome is not known are told so.
  virtual void end_life() = 0;
  // ReplicaView has changed in what callers are told: role, leader, term.
  virtual void tell(const ReplicaView& view) = 0;
};

// Elects itself when nobody leads, leads until there is any doubt, and otherwise follows, so that it can take
// over at once.
//
// Not its job: serving (the owner), and threads: turn() and keep_lease() are called again and again, each by
// one of its own, when the time that they return has passed, or at once after on_hurry().
// Time: CLOCK_BOOTTIME, so that a machine that slept knows that its term is over.
// Threads: turn(), hand_over() by one; keep_lease() by another; doubt(), give_up(), view() by any. No lock is
// held over a call of etcd's or the owner's. Invariant: between begin_life() and end_life() of the owner
// there is one term; a lease is used for one term at most.
class Replica {
 public:
  Replica(etcd::Client& client, ReplicaSettings settings, ReplicaOwner& owner, EtcdTiming timing);
  ~Replica();

  // Whether the settings can be right: an error is one line, and trying again would not help. An etcd that is
  // away is none.
  Result<void> check();

  // One piece of work of whatever this server is now. Returns when to call again.
  Duration turn();
  // Renews the lease. Returns when to call again.
  Duration keep_lease();
  // Something has made it doubtful that this server leads: the term ends.
  void doubt(const std::string& why);
  // The process ends, and has waited long enough for what etcd does not take: the term is over, and no other
  // begins. For good.
  void give_up();
  // SIGTERM: what is written is written, another may lead. Before it the owner has ended its life.
  void hand_over();

  // Of the prefix, in this term: for who copies a store into it. By any thread; blocks.
  Result<void> write_format(std::string_view format);

  ReplicaView view() const TS_EXCLUDES(mutex_);
  const EtcdStatistics& statistics() const { return statistics_; }
  etcd::Client& client() { return client_; }

  // turn() should be called again now. Set before the first call; by any thread.
  std::function<void()> on_hurry;
  // For a simulation, which calls the journal's turn() by hand: set by each begin of a term.
  std::function<bool()>* journal_by_hand = nullptr;

 private:
  using Timeout = etcd::Client::Timeout;

  // As a standby.
  Duration stand_by();
  void hold_lease();
  etcd::Answer<std::optional<etcd::KeyValue>> read_leader();
  Result<void> check_format(const etcd::RangeAnswer& found) const;
  Duration campaign();
  Duration follow(const etcd::KeyValue& leader);
  void look_at_namesake(bool there);
  Result<void> hand_on();
  void begin_anew();
  void watch_leader();
  // As the leader.
  Duration take_over(etcd::Revision term);
  etcd::Answer<void> read_all(etcd::Revision term);
  Duration lead();
  void stand_down(const std::string& why);
  void drop_lease();
  bool term_is_over() const;
  std::optional<bool> has_leaders_key(etcd::Revision term);

  void register_self(bool leads, uint64_t number, uint64_t lag);
  void read_servers();
  Duration problem(const etcd::CallError& error);
  void no_problem();
  template <class Change>
  void change_view(Change change) TS_EXCLUDES(mutex_);
  Duration boot() const { return timing_.time.boot(); }
  void hurry() {
    if (on_hurry) on_hurry();
  }

  etcd::Client& client_;
  const ReplicaSettings settings_;
  const EtcdKeys keys_;
  ReplicaOwner& owner_;
  const EtcdTiming timing_;
  const Timeout call_timeout_;
  EtcdStatistics statistics_;

  // What keep_lease() and turn() share.
  std::atomic<etcd::LeaseId> lease_{etcd::LeaseId::none};
  std::atomic<Duration::rep> lease_until_{0};  // by boot()
  std::atomic<bool> doubtful_{false};
  std::atomic<etcd::Revision> term_{0};  // that this server was elected for; 0: it stands by
  std::atomic<bool> given_up_{false};

  // turn()'s own.
  std::unique_ptr<EtcdImage>
      image_;  // what it has given is with the owner: one is worth nothing without the other
  etcd::Revision followed_term_ = 0, led_term_ = 0;
  Duration not_before_{};  // the next campaign, after a take-over that failed, or before one that is ready
  Duration registered_at_{}, looked_at_{};
  std::optional<ServerEntry> registered_;
  int64_t registered_in_ = 0;  // which kTellNumberEvery of the clock
  // The entries of the others as they were last, since when.
  std::map<std::string, std::pair<etcd::Revision, Duration>> entries_;
  std::unique_ptr<etcd::Watch> watch_;
  std::atomic<bool> watch_lost_{false};
  std::optional<Duration> namesake_since_;  // somebody leads under this server's URL, and not with its lease
  bool told_problem_ = false, told_damage_ = false, told_namesake_ = false;

  mutable Mutex mutex_;
  ReplicaView view_ TS_GUARDED_BY(mutex_);
  std::string doubt_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
