// An etcd in memory, for the tests of what stands on it: right by default, and with faults that a test plans.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/sync.h"
#include "etcd/etcd.h"
#include "journal/etcd_journal.h"

namespace turnstile::testing {

// Time that passes when a test says so, or somebody waits.
class ManualTime final : public TimeSource {
 public:
  Time wall() const override { return Time(std::chrono::hours(24 * 365 * 55)) + since_; }
  Duration steady() const override { return since_; }
  Duration boot() const override { return since_; }
  void pass(Duration time) { since_ += time; }

 private:
  Duration since_{std::chrono::seconds(1)};
};

// Threads: any. Leases end only when the test, or a revocation, ends them.
class FakeEtcd final : public etcd::Client {
 public:
  using KeyValue = etcd::KeyValue;
  using LeaseId = etcd::LeaseId;
  using Revision = etcd::Revision;
  using Timeout = etcd::Client::Timeout;
  using State = std::map<std::string, KeyValue>;

  // The next writes end so: an error, after having been carried out or not.
  struct Fault {
    etcd::Failure failure = etcd::Failure::unknown;
    bool carried_out = false;
  };
  std::deque<Fault> commit_faults;
  int range_faults = 0;                     // so many of the next reads are not answered
  std::optional<etcd::CallError> all_fail;  // every call
  std::function<void()> before_commit;      // once, before the next one is looked at
  std::function<void()> after_range;        // once, after the next one was answered
  std::function<void()> on_compact;         // while etcd is at it
  std::set<LeaseId> forgotten;              // whose renewal succeeds although they are gone
  std::deque<etcd::Transaction> sent;  // with keep_sent: every transaction, to be carried out again later
  bool keep_sent = false;
  std::optional<size_t>
      bytes_a_second;  // the most that arrives; a read that takes longer than its time fails
  std::optional<etcd::CallError> grants_fail;
  size_t commits = 0, ranges = 0, values_read = 0;
  size_t largest_transaction = 0, most_operations = 0, largest_answer = 0;
  Revision compacted = 0;

  etcd::Answer<etcd::RangeAnswer> range(const etcd::RangeRequest& request, Timeout within) override {
    etcd::Answer<etcd::RangeAnswer> answer = look(request);
    size_t bytes = 0;
    if (answer)
      for (const KeyValue& each : answer->values) bytes += each.key.size() + each.value.size();
    if (bytes_a_second && bytes * 1000 > *bytes_a_second * size_t(within.count()))
      return std::unexpected(etcd::CallError{etcd::Failure::not_done, "it took too long"});
    if (after_range) std::exchange(after_range, nullptr)();
    return answer;
  }
  etcd::Answer<etcd::TransactionAnswer> commit(const etcd::Transaction& transaction, Timeout) override {
    if (before_commit) std::exchange(before_commit, nullptr)();
    const Locked lock(mutex_);
    if (all_fail) return std::unexpected(*all_fail);
    ++commits;
    if (keep_sent) sent.push_back(transaction);
    size_t bytes = 0;
    for (const etcd::Put& put : transaction.puts) bytes += put.key.size() + put.value.size();
    largest_transaction = std::max(largest_transaction, bytes);
    most_operations = std::max(most_operations, transaction.puts.size() + transaction.erases.size());
    if (commit_faults.empty()) return apply(transaction);
    const Fault fault = commit_faults.front();
    commit_faults.pop_front();
    if (fault.carried_out) (void)apply(transaction);
    return std::unexpected(etcd::CallError{fault.failure, "as the test wants it"});
  }

  etcd::Answer<etcd::LeaseAnswer> grant(std::chrono::seconds ttl, Timeout) override {
    const Locked lock(mutex_);
    if (all_fail) return std::unexpected(*all_fail);
    if (grants_fail) return std::unexpected(*grants_fail);
    const auto lease = LeaseId(++last_lease_);
    leases_[lease] = ttl;
    return etcd::LeaseAnswer{lease, ttl};
  }
  etcd::Answer<std::chrono::seconds> keep_alive(LeaseId lease, Timeout) override {
    const Locked lock(mutex_);
    if (all_fail) return std::unexpected(*all_fail);
    if (forgotten.contains(lease)) return std::chrono::seconds(5);
    const auto found = leases_.find(lease);
    if (found == leases_.end()) return std::unexpected(etcd::CallError{etcd::Failure::gone, "no such lease"});
    return found->second;
  }
  etcd::Answer<void> revoke(LeaseId lease, Timeout) override {
    {
      const Locked lock(mutex_);
      if (all_fail) return std::unexpected(*all_fail);
    }
    end_lease(lease);
    return {};
  }

  std::unique_ptr<etcd::Watch> watch(const std::string& begin, const std::string&, Revision,
                                     etcd::OnWatch on_events, std::function<void(etcd::CallError)>) override {
    const Locked lock(mutex_);
    watchers_[begin] = std::move(on_events);
    return std::make_unique<etcd::Watch>();
  }
  etcd::Answer<void> compact(Revision revision, Timeout) override {
    if (on_compact) on_compact();
    const Locked lock(mutex_);
    compacted = std::max(compacted, revision);
    return {};
  }
  std::vector<etcd::MemberStatus> members(Timeout) override {
    etcd::MemberStatus only;
    only.url = "http://fake:2379";
    only.healthy = true;
    only.version = "3.4.23";
    return {only};
  }

  // A copy that was under way for long arrives: etcd does not know that it has carried it out already.
  void arrive_late(const etcd::Transaction& transaction) {
    const Locked lock(mutex_);
    (void)apply(transaction);
  }
  // What the lease's time does.
  void end_lease(LeaseId lease) {
    etcd::OnWatch told;
    Revision now = 0;
    {
      const Locked lock(mutex_);
      if (leases_.erase(lease) == 0) return;
      State next = history_.rbegin()->second;
      if (std::erase_if(next, [&](const auto& each) { return each.second.lease == lease; }) == 0) return;
      now = ++revision_;
      history_[now] = std::move(next);
      if (!watchers_.empty()) told = watchers_.begin()->second;
    }
    if (told) told({}, now);
  }
  Revision make(const std::string& key, const std::string& value, LeaseId lease = LeaseId::none) {
    const Locked lock(mutex_);
    etcd::Transaction transaction;
    transaction.puts.push_back({key, value, lease});
    return apply(transaction)->revision;
  }
  void erase(const std::string& begin, const std::string& end = {}) {
    const Locked lock(mutex_);
    etcd::Transaction transaction;
    transaction.erases.push_back({begin, end});
    (void)apply(transaction);
  }
  State state() {
    const Locked lock(mutex_);
    return history_.rbegin()->second;
  }
  std::vector<LeaseId> leases() {
    const Locked lock(mutex_);
    std::vector<LeaseId> all;
    for (const auto& [lease, ttl] : leases_) all.push_back(lease);
    return all;
  }
  Revision revision() {
    const Locked lock(mutex_);
    return revision_;
  }

 private:
  etcd::Answer<etcd::RangeAnswer> look(const etcd::RangeRequest& request) {
    const Locked lock(mutex_);
    if (all_fail) return std::unexpected(*all_fail);
    ++ranges;
    if (range_faults > 0) {
      --range_faults;
      return std::unexpected(etcd::CallError{etcd::Failure::unknown, "as the test wants it"});
    }
    if (request.at != 0 && request.at < compacted)
      return std::unexpected(etcd::CallError{etcd::Failure::compacted, "compacted"});
    const State& state = request.at == 0 ? history_.rbegin()->second : history_.at(request.at);
    etcd::RangeAnswer answer;
    answer.revision = revision_;
    size_t bytes = 0;
    for (auto each = state.lower_bound(request.begin); each != state.end(); ++each) {
      if (request.end.empty() ? each->first != request.begin : each->first >= request.end) break;
      if (request.limit != 0 && answer.values.size() == request.limit) {
        answer.more = true;
        break;
      }
      answer.values.push_back(each->second);
      values_read += !request.keys_only;
      if (request.keys_only) answer.values.back().value.clear();
      bytes += answer.values.back().value.size();
    }
    largest_answer = std::max(largest_answer, bytes);
    return answer;
  }

  etcd::Answer<etcd::TransactionAnswer> apply(const etcd::Transaction& transaction) TS_REQUIRES(mutex_) {
    State next = history_.rbegin()->second;
    for (const etcd::Guard& guard : transaction.guards) {
      const auto found = next.find(guard.key);
      if ((found == next.end() ? 0 : found->second.create_revision) != guard.expected)
        return etcd::TransactionAnswer{false, revision_};
    }
    for (const etcd::Put& put : transaction.puts)
      if (put.lease != LeaseId::none && !leases_.contains(put.lease))
        return std::unexpected(etcd::CallError{etcd::Failure::gone, "no such lease"});
    if (transaction.puts.empty() && transaction.erases.empty())
      return etcd::TransactionAnswer{true, revision_};
    ++revision_;
    for (const etcd::Erase& erase : transaction.erases)
      std::erase_if(next, [&](const auto& each) {
        return erase.end.empty() ? each.first == erase.begin
                                 : each.first >= erase.begin && each.first < erase.end;
      });
    for (const etcd::Put& put : transaction.puts) {
      KeyValue& value = next[put.key];
      if (value.create_revision == 0) value.create_revision = revision_;
      value.key = put.key;
      value.value = put.value;
      value.lease = put.lease;
      value.mod_revision = revision_;
    }
    history_[revision_] = std::move(next);
    return etcd::TransactionAnswer{true, revision_};
  }

  Mutex mutex_;
  Revision revision_ TS_GUARDED_BY(mutex_) = 1;
  std::map<Revision, State> history_ TS_GUARDED_BY(mutex_){{1, {}}};
  std::map<LeaseId, std::chrono::seconds> leases_ TS_GUARDED_BY(mutex_);
  std::map<std::string, etcd::OnWatch> watchers_ TS_GUARDED_BY(mutex_);
  int64_t last_lease_ TS_GUARDED_BY(mutex_) = 100;
};

}  // namespace turnstile::testing
