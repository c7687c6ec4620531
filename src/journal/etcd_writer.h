// Transactions that are known to be done: how a term writes to etcd.
#pragma once

#include <string>

#include "base/error.h"
#include "etcd/etcd.h"
#include "journal/etcd_journal.h"

namespace turnstile {

// Sends guarded transactions, each until its outcome is known, or the term is over.
//
// Not its job: what is written. Threads: any; each call blocks.
// Invariant: a transaction whose outcome is unknown is sent again as it is, under the same keys, and nothing
// else in its place (S43).
class EtcdWriter {
 public:
  EtcdWriter(etcd::Client& client, const EtcdKeys& keys, EtcdTerm term, EtcdTiming timing,
             EtcdStatistics& statistics, std::chrono::milliseconds call_timeout)
      : client_(client),
        keys_(keys),
        term_(std::move(term)),
        timing_(std::move(timing)),
        statistics_(statistics),
        call_timeout_(call_timeout) {}

  etcd::Revision term() const { return term_.revision; }
  const std::function<bool()>& is_over() const { return term_.is_over; }

  // Adds the guard. The answer is the revision at which it was done. An error ends the term: another server
  // leads, or nobody knows what this one has written last. Or it was done, and etcd's answer has come when
  // the term was over (it waited for this process, which slept): then it counts for whoever leads next (S47).
  Result<etcd::Revision> commit(etcd::Transaction transaction);

  // Asked until there is an answer that is not older than this revision, or the term is over.
  Result<etcd::RangeAnswer> read(const etcd::RangeRequest& request, etcd::Revision not_before);

 private:
  // After NOSPACE, which is no rollback: whether what was refused is there all the same.
  bool is_written(const etcd::Transaction& transaction);
  void tell_no_space(const etcd::CallError& error);
  bool came_too_late() const;

  etcd::Client& client_;
  const EtcdKeys keys_;
  const EtcdTerm term_;
  const EtcdTiming timing_;
  EtcdStatistics& statistics_;
  const std::chrono::milliseconds call_timeout_;
};

}  // namespace turnstile
