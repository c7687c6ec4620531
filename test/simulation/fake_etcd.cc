#include "fake_etcd.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace turnstile::sim {
namespace {

using etcd::Answer;
using etcd::CallError;
using etcd::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLookAtLeases = milliseconds(500);
constexpr Duration kStaleAtMost = milliseconds(1500);

bool in_range(const std::string& key, const std::string& begin, const std::string& end) {
  return end.empty() ? key == begin : key >= begin && key < end;
}

}  // namespace

// Calls of one process. A call has a way there, a moment in which it is carried out, and a way back.
class FakeEtcdClient final : public etcd::Client {
 public:
  FakeEtcdClient(FakeEtcd& etcd, unsigned server, const StrandHost& process)
      : etcd_(etcd), server_(server), process_(process) {}

  Answer<etcd::RangeAnswer> range(const etcd::RangeRequest& request, Timeout within) override {
    return call<etcd::RangeAnswer>(Kind::read, within, [this, request] { return etcd_.read(request); });
  }
  Answer<etcd::TransactionAnswer> commit(const etcd::Transaction& transaction, Timeout within) override {
    return call<etcd::TransactionAnswer>(Kind::write, within,
                                         [this, transaction] { return etcd_.apply(transaction); });
  }
  Answer<etcd::LeaseAnswer> grant(seconds ttl, Timeout within) override {
    return call<etcd::LeaseAnswer>(Kind::write, within, [this, ttl] { return etcd_.grant(ttl); });
  }
  Answer<seconds> keep_alive(etcd::LeaseId lease, Timeout within) override {
    return call<seconds>(Kind::renewal, within, [this, lease] { return etcd_.renew(lease); });
  }
  Answer<void> revoke(etcd::LeaseId lease, Timeout within) override {
    return call<void>(Kind::write, within, [this, lease] { return etcd_.revoke(lease); });
  }
  Answer<void> compact(etcd::Revision revision, Timeout within) override {
    return call<void>(Kind::write, within, [this, revision] { return etcd_.compact(revision); });
  }
  std::vector<etcd::MemberStatus> members(Timeout) override { return {}; }

  std::unique_ptr<etcd::Watch> watch(const std::string& begin, const std::string& end, etcd::Revision,
                                     etcd::OnWatch on_events, std::function<void(CallError)>) override {
    struct Held final : etcd::Watch {
      std::shared_ptr<FakeEtcd::Watcher> watcher;
    };
    auto held = std::make_unique<Held>();
    held->watcher = std::make_shared<FakeEtcd::Watcher>(
        FakeEtcd::Watcher{server_, begin, end, std::move(on_events), &process_});
    etcd_.watchers_.push_back(held->watcher);
    return held;
  }

 private:
  enum class Kind : uint8_t { read, write, renewal };
  enum class Fate : uint8_t {
    well,
    not_reached,      // nothing was sent
    way_there_lost,   // never carried out; nobody says so
    way_back_lost,    // carried out; nobody says so
    said_to_be_lost,  // carried out; etcd says that it has timed out, or that its leader has changed
    late,             // carried out when nobody waits for it any more
  };

  Fate random_fate(Kind kind) {
    Random& random = etcd_.schedule_.random;
    if (etcd_.one_in_ == 0 || !random.chance(etcd_.one_in_)) return Fate::well;
    const Fate fate = Fate(random.between(1, 5));
    if (kind != Kind::write) return fate == Fate::late ? Fate::way_back_lost : fate;
    return etcd_.lates_ && random.chance(2) ? Fate::late : fate;
  }

  // What an error means depends on whether something may have changed.
  template <class T>
  Answer<T> unknown(Kind kind) {
    return std::unexpected(CallError{kind == Kind::read ? Failure::not_done : Failure::unknown,
                                     "request timed out (simulated)"});
  }
  template <class T>
  Answer<T> not_done() {
    return std::unexpected(CallError{Failure::not_done, "connection refused (simulated)"});
  }

  template <class T, class Work>
  Answer<T> call(Kind kind, Timeout within, Work work) {
    Strand* const strand = Strand::current();
    if (strand == nullptr || process_.dead) return not_done<T>();
    Schedule& schedule = etcd_.schedule_;
    Random& random = schedule.random;
    const uint64_t restored = etcd_.restored_;
    const Time deadline = schedule.now() + within;
    const auto carry_out = [work, &etcd = etcd_, restored] {
      if (etcd.restored_ == restored) (void)work();
    };
    const auto until_deadline = [&] { return std::max(Duration(1), deadline - schedule.now()); };
    const Duration there(random.between(50, random.chance(20) ? 30'000 : 1500));
    const Duration back(random.between(50, random.chance(20) ? 30'000 : 1500));
    Fate fate = random_fate(kind);
    if (etcd_.is_cut(server_, false)) {
      // Written to a connection that nobody knows to be dead, or not even that. What was written may be
      // brought when the network is well again.
      fate = random.chance(2)                          ? Fate::not_reached
             : kind == Kind::write && random.chance(3) ? Fate::late
                                                       : Fate::way_there_lost;
    }
    if (fate != Fate::well) ++etcd_.rare_["calls of etcd that went wrong"];
    if (fate == Fate::not_reached) {
      strand->sleep(std::min<Duration>(there, within));
      return not_done<T>();
    }
    if (fate == Fate::way_there_lost) {
      strand->sleep(random.chance(3) ? there + back : until_deadline());
      return unknown<T>(kind);
    }
    if (fate == Fate::late) {
      ++etcd_.rare_["writes carried out late"];
      const Duration delay = random.chance(2) ? Duration(within) + milliseconds(random.between(0, 300))
                                              : milliseconds(random.between(1, 6000));
      schedule.after(delay, carry_out);
      strand->sleep(random.chance(3) ? there + back : until_deadline());
      return unknown<T>(kind);
    }
    strand->sleep(there);
    while (schedule.now() < etcd_.stalled_until_) {
      if (process_.dead) return not_done<T>();
      if (random.chance(4))
        return random.chance(2) ? not_done<T>() : unknown<T>(kind);  // no leader, or changed
      if (schedule.now() >= deadline) {
        if (kind == Kind::write && random.chance(2))
          schedule.at(etcd_.stalled_until_ + Duration(random.between(1, 50'000)), carry_out);
        return unknown<T>(kind);
      }
      strand->sleep(std::min<Duration>(milliseconds(random.between(20, 200)), until_deadline()));
    }
    if (process_.dead && random.chance(2)) return not_done<T>();
    if (etcd_.restored_ != restored) return not_done<T>();
    Answer<T> answer = work();
    if (fate == Fate::way_back_lost || etcd_.is_cut(server_, true)) {
      strand->sleep(until_deadline());
      return unknown<T>(kind);
    }
    strand->sleep(back);
    if (fate == Fate::said_to_be_lost) return unknown<T>(kind);
    if (schedule.now() > deadline + milliseconds(50) && random.chance(2))
      return unknown<T>(kind);  // it was stopped
    return answer;
  }

  FakeEtcd& etcd_;
  const unsigned server_;
  const StrandHost& process_;
};

std::unique_ptr<etcd::Client> FakeEtcd::connect(unsigned server, const StrandHost& process) {
  return std::make_unique<FakeEtcdClient>(*this, server, process);
}

bool FakeEtcd::is_cut(unsigned server, bool answer) const {
  const auto found = cuts_.find(server);
  if (found == cuts_.end()) return false;
  return found->second == Cut::both || (answer && found->second == Cut::answers);
}

void FakeEtcd::stall_until(Time time) {
  stalled_until_ = std::max(stalled_until_, time);
  stale_until_ = stalled_until_ + seconds(1);
  // A new leader of etcd's gives every lease its full time again.
  for (auto& [id, lease] : leases_) lease.ends = std::max(lease.ends, stalled_until_ + lease.ttl);
}

void FakeEtcd::full_until(Time time) {
  full_until_ = time;
  trips_ = true;
}

const FakeEtcd::Version* FakeEtcd::version(const std::vector<Version>& of, Revision at) const {
  const Version* found = nullptr;
  for (const Version& each : of)
    if (each.modified <= at) found = &each;
  return found != nullptr && found->value ? found : nullptr;
}

Answer<etcd::TransactionAnswer> FakeEtcd::apply(const etcd::Transaction& transaction) {
  for (const etcd::Guard& guard : transaction.guards) {
    const auto found = keys_.find(guard.key);
    const Version* const now = found == keys_.end() ? nullptr : version(found->second, revision_);
    if ((now == nullptr ? 0 : now->created) != guard.expected) {
      ++rare_["guards that refused a write"];
      return etcd::TransactionAnswer{false, revision_};
    }
  }
  const bool trips = is_full() && std::exchange(trips_, false);
  const CallError full{Failure::no_space, "database space exceeded (simulated)"};
  if (is_full() && !trips && !transaction.puts.empty()) return std::unexpected(full);
  for (const etcd::Put& put : transaction.puts)
    if (put.lease != LeaseId::none && !leases_.contains(put.lease))
      return std::unexpected(CallError{Failure::gone, "requested lease not found (simulated)"});
  if (transaction.puts.empty() && transaction.erases.empty()) return etcd::TransactionAnswer{true, revision_};
  ++revision_;
  recent_.emplace_back(schedule_.now(), revision_);
  while (recent_.front().first < schedule_.now() - kStaleAtMost && recent_.size() > 1) recent_.pop_front();
  std::vector<etcd::WatchEvent> events;
  for (const etcd::Erase& range : transaction.erases) {
    std::vector<std::string> erased;
    for (auto each = keys_.lower_bound(range.begin); each != keys_.end(); ++each) {
      if (!in_range(each->first, range.begin, range.end)) break;
      if (each->second.back().value) erased.push_back(each->first);
    }
    for (const std::string& key : erased) erase(key, events);
  }
  for (const etcd::Put& put : transaction.puts) {
    std::vector<Version>& versions = keys_[put.key];
    const bool there = !versions.empty() && versions.back().value;
    const Revision created = there ? versions.back().created : revision_;
    versions.push_back({revision_, created, put.lease, std::make_shared<const std::string>(put.value)});
    events.push_back({.value = {put.key, put.value, created, revision_, put.lease}, .erased = false});
  }
  if (schedule_.wants_trace) {
    std::string text = fmt::format("etcd {}:", revision_);
    for (const etcd::WatchEvent& each : events)
      text += fmt::format(" {}{}", each.erased ? "-" : "+", each.value.key);
    schedule_.note(text);
  }
  tell(events);
  spring_ambushes(transaction);
  if (trips && !transaction.puts.empty()) {
    ++rare_["writes done by an etcd that said it was full"];
    return std::unexpected(full);
  }
  return etcd::TransactionAnswer{true, revision_};
}

void FakeEtcd::spring_ambushes(const etcd::Transaction& transaction) {
  const auto of_log = [](const etcd::Put& put) { return put.key.find("/log/") != std::string::npos; };
  if (std::ranges::none_of(transaction.puts, of_log)) return;
  for (Ambush& each : ambushes_)
    if (--each.nth == 0) schedule_.after(Duration(1), std::move(each.what));
  std::erase_if(ambushes_, [](const Ambush& each) { return each.nth == 0; });
}

void FakeEtcd::back_up() { backup_ = {revision_, compacted_, keys_, leases_}; }

bool FakeEtcd::restore() {
  if (!backup_) return false;
  ++restored_;
  revision_ = backup_->revision;
  compacted_ = backup_->compacted;
  keys_ = backup_->keys;
  leases_ = backup_->leases;
  for (auto& [id, lease] : leases_) lease.ends = schedule_.now() + lease.ttl;
  recent_.clear();
  return true;
}

void FakeEtcd::erase(const std::string& key, std::vector<etcd::WatchEvent>& events) {
  keys_[key].push_back({revision_, 0, LeaseId::none, nullptr});
  etcd::WatchEvent event;
  event.value.key = key;
  event.value.mod_revision = revision_;
  event.erased = true;
  events.push_back(std::move(event));
}

// Events may be lost, come late, and come twice.
void FakeEtcd::tell(const std::vector<etcd::WatchEvent>& events) {
  std::erase_if(watchers_, [](const auto& each) { return each.expired(); });
  for (const std::weak_ptr<Watcher>& weak : watchers_) {
    const std::shared_ptr<Watcher> watcher = weak.lock();
    std::vector<etcd::WatchEvent> seen;
    for (const etcd::WatchEvent& each : events)
      if (in_range(each.value.key, watcher->begin, watcher->end)) seen.push_back(each);
    if (seen.empty() || schedule_.random.chance(5)) continue;
    for (int times = schedule_.random.chance(8) ? 2 : 1; times > 0; --times)
      schedule_.after(Duration(schedule_.random.between(100, 20'000)), [this, weak, seen, at = revision_] {
        const std::shared_ptr<Watcher> still = weak.lock();
        if (!still || still->process->dead || still->process->paused_until > schedule_.now()) return;
        if (!is_cut(still->server, true)) still->on_events(seen, at);
      });
  }
}

// By consensus, but for the time after a stall: 3.4.23 may then read what is no longer so.
Answer<etcd::RangeAnswer> FakeEtcd::read(const etcd::RangeRequest& request) {
  Revision at = request.at != 0 ? request.at : revision_;
  etcd::RangeAnswer answer;
  answer.revision = revision_;
  if (request.at == 0 && schedule_.now() < stale_until_ && !recent_.empty() && schedule_.random.chance(4)) {
    const Revision old = recent_[schedule_.random.below(recent_.size())].second;
    if (old >= compacted_ && old < at) {
      ++rare_["stale reads"];
      answer.revision = at = old;
    }
  }
  if (at > revision_) return std::unexpected(CallError{Failure::refused, "a future revision (simulated)"});
  if (at < compacted_) return std::unexpected(CallError{Failure::compacted, "compacted (simulated)"});
  for (auto each = keys_.lower_bound(request.begin); each != keys_.end(); ++each) {
    if (!in_range(each->first, request.begin, request.end)) break;
    const Version* const found = version(each->second, at);
    if (found == nullptr) continue;
    if (request.limit != 0 && answer.values.size() == request.limit) {
      answer.more = true;
      break;
    }
    answer.values.push_back({each->first, request.keys_only ? std::string() : *found->value, found->created,
                             found->modified, found->lease});
  }
  return answer;
}

Answer<etcd::LeaseAnswer> FakeEtcd::grant(seconds ttl) {
  if (is_full()) return std::unexpected(CallError{Failure::no_space, "database space exceeded (simulated)"});
  const seconds made = std::max(ttl, seconds(2));  // as etcd with its usual election time-out
  const LeaseId id{++last_lease_};
  leases_[id] = {made, schedule_.now() + made};
  return etcd::LeaseAnswer{id, made};
}

Answer<seconds> FakeEtcd::renew(LeaseId id) {
  const auto found = leases_.find(id);
  if (found != leases_.end()) {
    found->second.ends = schedule_.now() + found->second.ttl;
    return found->second.ttl;
  }
  if (undead_.contains(id) || schedule_.random.chance(3)) {
    ++rare_["renewals of leases that were gone"];
    if (schedule_.random.chance(2)) undead_.insert(id);
    return seconds(2);
  }
  return std::unexpected(CallError{Failure::gone, "requested lease not found (simulated)"});
}

Answer<void> FakeEtcd::revoke(LeaseId id) {
  if (leases_.erase(id) == 0)
    return std::unexpected(CallError{Failure::gone, "requested lease not found (simulated)"});
  std::vector<std::string> keys;
  for (const auto& [key, versions] : keys_)
    if (versions.back().value && versions.back().lease == id) keys.push_back(key);
  if (keys.empty()) return {};
  ++revision_;
  recent_.emplace_back(schedule_.now(), revision_);
  std::vector<etcd::WatchEvent> events;
  for (const std::string& key : keys) erase(key, events);
  tell(events);
  return {};
}

std::string FakeEtcd::value(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() || !found->second.back().value ? std::string() : *found->second.back().value;
}

void FakeEtcd::end_lease_of(const std::string& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end() || !found->second.back().value) return;
  ++rare_["leases that ended too early"];
  (void)revoke(found->second.back().lease);
}

void FakeEtcd::erase_by_hand(const std::string& key) {
  if (value(key).empty()) return;
  ++rare_["keys of leaders deleted by hand"];
  etcd::Transaction transaction;
  transaction.erases.push_back({key, {}});
  (void)apply(transaction);
}

void FakeEtcd::look_after_leases() {
  schedule_.after(kLookAtLeases, [this] { look_after_leases(); });
  if (schedule_.now() < stalled_until_) return;
  std::vector<LeaseId> over;
  for (const auto& [id, lease] : leases_)
    if (lease.ends <= schedule_.now()) over.push_back(id);
  for (const LeaseId id : over) (void)revoke(id);
}

Answer<void> FakeEtcd::compact(Revision revision) {
  if (revision <= compacted_) return std::unexpected(CallError{Failure::compacted, "compacted (simulated)"});
  compacted_ = revision;
  for (auto each = keys_.begin(); each != keys_.end();) {
    std::vector<Version>& versions = each->second;
    while (versions.size() > 1 && versions[1].modified <= revision) versions.erase(versions.begin());
    const bool gone = versions.size() == 1 && !versions[0].value && versions[0].modified <= revision;
    each = gone ? keys_.erase(each) : std::next(each);
  }
  return {};
}

}  // namespace turnstile::sim
