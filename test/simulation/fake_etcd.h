// One etcd for all servers of a simulated history: a single order of writes, and around it everything that
// etcd 3.4.23 and the network to it can do wrong.
//
// What it never does: apply a transaction whose guards do not hold, apply half of one, or forget one. What it
// does: answer "timed out" for what was done, is done later, or is done twice because it was sent twice;
// renew a lease that is gone; read what is no longer so; lose and repeat events; be full, and say so of what
// it did.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "etcd/etcd.h"
#include "schedule.h"
#include "strand.h"
#include "wires.h"

namespace turnstile::sim {

class FakeEtcd {
 public:
  FakeEtcd(Schedule& schedule, Rare& rare) : schedule_(schedule), rare_(rare) { look_after_leases(); }

  // How a server's process reaches it. `server`: for cut(). The process's strands must have ended when the
  // client is destroyed.
  std::unique_ptr<etcd::Client> connect(unsigned server, const StrandHost& process);

  // Weather.
  void set_error_rate(unsigned one_in) { one_in_ = one_in; }  // 0: every call is answered as it should be
  void set_lates(bool lates) {
    lates_ = lates;
  }  // most of what goes wrong is done later, and sent again before that
  enum class Cut : uint8_t { none, both, answers };  // answers: what is asked arrives
  void cut(unsigned server, Cut how) { cuts_[server] = how; }
  void stall_until(Time time);                // it has no leader of its own
  void full_until(Time time);                 // NOSPACE; the next write trips it
  void end_lease_of(const std::string& key);  // long before its time
  void erase_by_hand(const std::string& key);
  // `what` happens once, just behind the nth transaction from now on that puts something into the log, and
  // before whoever wrote it is told.
  void behind_log_write(unsigned nth, std::function<void()> what) {
    ambushes_.push_back({nth, std::move(what)});
  }
  void forget_ambushes() { ambushes_.clear(); }
  // Remembers all there is; and is so again, as if nothing had been since. Servers are down by then.
  void back_up();
  bool restore();  // false: there is no backup

  std::string value(const std::string& key) const;  // as it is now; empty: there is none

 private:
  friend class FakeEtcdClient;
  using LeaseId = etcd::LeaseId;
  using Revision = etcd::Revision;
  struct Version {
    Revision modified = 0, created = 0;
    LeaseId lease = LeaseId::none;
    std::shared_ptr<const std::string> value;  // none: erased
  };
  struct Lease {
    std::chrono::seconds ttl{};
    Time ends{};
  };
  struct Backup {
    Revision revision = 0, compacted = 0;
    std::map<std::string, std::vector<Version>> keys;
    std::map<LeaseId, Lease> leases;
  };
  struct Ambush {
    unsigned nth = 1;
    std::function<void()> what;
  };
  struct Watcher {
    unsigned server = 0;
    std::string begin, end;
    etcd::OnWatch on_events;
    const StrandHost* process = nullptr;
  };

  etcd::Answer<etcd::TransactionAnswer> apply(const etcd::Transaction& transaction);
  etcd::Answer<etcd::RangeAnswer> read(const etcd::RangeRequest& request);
  etcd::Answer<etcd::LeaseAnswer> grant(std::chrono::seconds ttl);
  etcd::Answer<std::chrono::seconds> renew(LeaseId lease);
  etcd::Answer<void> revoke(LeaseId lease);
  etcd::Answer<void> compact(Revision revision);
  void look_after_leases();
  void spring_ambushes(const etcd::Transaction& transaction);
  const Version* version(const std::vector<Version>& of, Revision at) const;
  void erase(const std::string& key, std::vector<etcd::WatchEvent>& events);
  void tell(const std::vector<etcd::WatchEvent>& events);
  bool is_full() const { return schedule_.now() < full_until_; }
  bool is_cut(unsigned server, bool answer) const;

  Schedule& schedule_;
  Rare& rare_;
  unsigned one_in_ = 60;
  Revision revision_ = 1, compacted_ = 0;
  std::map<std::string, std::vector<Version>> keys_;
  std::map<LeaseId, Lease> leases_;
  std::set<LeaseId> undead_;                      // gone, and renewed all the same
  std::deque<std::pair<Time, Revision>> recent_;  // for stale reads
  std::map<unsigned, Cut> cuts_;
  std::vector<std::weak_ptr<Watcher>> watchers_;
  std::vector<Ambush> ambushes_;
  std::optional<Backup> backup_;
  uint64_t restored_ = 0;  // how often: what was sent to it before never arrives
  Time stalled_until_{}, full_until_{}, stale_until_{};
  bool trips_ = false, lates_ = false;
  int64_t last_lease_ = 1000;
};

}  // namespace turnstile::sim
