// The journal of one term in etcd: what the server that leads writes, as long as it leads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/sync.h"
#include "etcd/etcd.h"
#include "journal/etcd_image.h"
#include "journal/etcd_layout.h"
#include "journal/journal.h"

namespace turnstile {

// What etcd has done for us so far, for people and metrics. Threads: any.
class EtcdStatistics {
 public:
  void count_commit(Duration took) TS_EXCLUDES(mutex_);
  void count_error(const etcd::CallError& error) TS_EXCLUDES(mutex_);

  uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }
  bool no_space() const { return no_space_.load(std::memory_order_relaxed); }
  void set_no_space(bool now) { no_space_ = now; }
  // Of the log's next key, while this server leads.
  uint64_t next_number() const { return next_number_.load(std::memory_order_relaxed); }
  void set_next_number(uint64_t number) { next_number_ = number; }
  // Of the latest commits; 0: there is none.
  double median_commit_ms() const TS_EXCLUDES(mutex_);
  std::string last_error() const TS_EXCLUDES(mutex_);

 private:
  static constexpr size_t kRemembered = 256;

  std::atomic<uint64_t> commits_{0}, errors_{0}, next_number_{0};
  std::atomic<bool> no_space_{false};
  mutable Mutex mutex_;
  Duration latest_[kRemembered] TS_GUARDED_BY(mutex_);
  size_t samples_ TS_GUARDED_BY(mutex_) = 0;
  std::string last_error_ TS_GUARDED_BY(mutex_);
};

// How this process waits and measures; a simulation brings its own.
struct EtcdTiming {
  const TimeSource& time = machine_time();
  std::function<void(Duration)> pause;  // blocks whoever calls it
  static EtcdTiming of_machine();
};

// The right to write. Every transaction is guarded by it, so that one that has ended can do no harm.
struct EtcdTerm {
  etcd::Revision revision = 0;  // of the leader's key, when it was made
  // Asked between attempts, because there is no sense in trying on, and before anything is told. Must count
  // the time in which the process or its machine slept.
  std::function<bool()> is_over;
};

struct EtcdJournalOptions {
  size_t key_bytes = 120 * 1024;            // of a log key's payload; larger batches become several keys
  size_t full_batch_bytes = 112 * 1024;     // a batch that has become so large takes no more steps
  size_t transaction_bytes = 1'200'000;     // etcd takes 1.5 MiB,
  size_t transaction_keys = 100;            // and 128 operations
  size_t chunk_bytes = 1'000'000;           // of a snapshot
  size_t most_pending_bytes = 64 << 20;     // overloaded() beyond this
  uint64_t snapshot_after_keys = 1000;      // wants_snapshot() with so many, or so many bytes of log,
  uint64_t snapshot_after_bytes = 8 << 20;  // ... if that is twice the last snapshot's size,
  // and with so many keys in any case: small batches beside a large state would become millions, which every
  // standby remembers one by one, and a new one reads. A million locks (115 MB) are then written once for
  // 50,000 batches: 2 KB each.
  uint64_t snapshot_at_keys = 50'000;
  std::chrono::milliseconds call_timeout{1000};
};

// `image`: what the prefix held when the term began, every key compared, and not in doubt: recover() gives
// what it has not given yet. `by_hand`: see make_file_journal().
std::unique_ptr<Journal> make_etcd_journal(etcd::Client& client, EtcdKeys keys, EtcdTerm term,
                                           std::unique_ptr<EtcdImage> image,
                                           const EtcdJournalOptions& options, const EtcdTiming& timing,
                                           EtcdStatistics& statistics,
                                           std::function<bool()>* by_hand = nullptr);

}  // namespace turnstile
