#include "journal/etcd_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/plant.h"

namespace turnstile {
namespace {

using etcd::Failure;
using std::chrono::milliseconds;

constexpr Duration kFirstPause = milliseconds(10), kLongestPause = milliseconds(250);

}  // namespace

Result<etcd::Revision> EtcdWriter::commit(etcd::Transaction transaction) {
  if (!planted(Plant::unguarded_write)) transaction.guards.push_back({keys_.leader(), term_.revision});
  bool in_doubt = false;  // an earlier try may have been carried out, or may yet be
  std::string last_error;
  for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (term_.is_over())
      return fail(last_error.empty()
                      ? "the time of this term is over"
                      : fmt::format("the time of this term is over, and etcd says: {}", last_error));
    const Duration sent = timing_.time.steady();
    const etcd::Answer<etcd::TransactionAnswer> answer = client_.commit(transaction, call_timeout_);
    if (answer && answer->done) {
      if (came_too_late()) return fail("etcd's answer came when the time of this term was over");
      statistics_.count_commit(timing_.time.steady() - sent);
      if (!transaction.puts.empty()) statistics_.set_no_space(false);  // the guard alone needs no space
      return answer->revision;
    }
    if (answer)
      return fail(in_doubt ? "another server leads now; whether the last write was done is not known"
                           : "another server leads now");
    statistics_.count_error(answer.error());
    last_error = answer.error().message;
    switch (answer.error().failure) {
      case Failure::not_done:
        break;
      case Failure::unknown:
        if (planted(Plant::answer_before_confirmed)) return term_.revision;
        in_doubt = true;
        break;
      case Failure::no_space:
        in_doubt = true;
        tell_no_space(answer.error());
        if (is_written(transaction) && !came_too_late()) return term_.revision;
        break;
      case Failure::compacted:
      case Failure::gone:
      case Failure::denied:
      case Failure::refused:
        return fail(fmt::format("etcd does not take a write: {}", last_error));
    }
    timing_.pause(pause);
  }
}

Result<etcd::RangeAnswer> EtcdWriter::read(const etcd::RangeRequest& request, etcd::Revision not_before) {
  for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (term_.is_over()) return fail("the time of this term is over");
    etcd::Answer<etcd::RangeAnswer> answer = client_.range(request, call_timeout_);
    if (answer && answer->revision >= not_before) return *std::move(answer);
    if (!answer) statistics_.count_error(answer.error());
    if (!answer && answer.error().failure != Failure::unknown && answer.error().failure != Failure::not_done)
      return fail(fmt::format("etcd does not take a read: {}", answer.error().message));
    timing_.pause(pause);
  }
}

// All keys of a transaction appear together, so the last one tells. That this term has written it is certain
// only if the term goes on, which an empty transaction shows: it is not refused for want of space.
bool EtcdWriter::is_written(const etcd::Transaction& transaction) {
  if (transaction.puts.empty()) return false;
  const etcd::Put& last = transaction.puts.back();
  etcd::RangeRequest request;
  request.begin = last.key;
  const auto found = client_.range(request, call_timeout_);
  if (!found || found->values.empty() || found->values.front().value != last.value) return false;
  etcd::Transaction nothing;
  nothing.guards = transaction.guards;
  const auto still = client_.commit(nothing, call_timeout_);
  return still && still->done;
}

bool EtcdWriter::came_too_late() const { return term_.is_over() && !planted(Plant::late_answer_counts); }

void EtcdWriter::tell_no_space(const etcd::CallError& error) {
  if (statistics_.no_space()) return;  // once, until it is over
  statistics_.set_no_space(true);
  log_error(
      "etcd has no space left and takes no writes: no lock can be granted until somebody compacts and "
      "defragments it, or raises its quota, and then disarms the alarm (etcdctl alarm disarm)",
      {{"error", error.message}});
}

}  // namespace turnstile
