// run_once(): the seeds' sequence check, lock, work, count, unlock, with the check that counts made under the
// lock (P7).
//
// What makes the counts of this side safe against a delete is one invariant: **the set of nodes of a resource
// becomes non-empty only under a hold that excludes deletes**. A pull adds its node while it holds; a skip
// joins a set that is not empty, in one step; and a skip that finds the set empty (the others have left, or
// counts are kept per node) takes a hold of its own before it adds. So a delete that has found the set empty
// under its hold finds it empty until it unlocks.
#include "turnstile/run_once.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "refcount/errors.h"

namespace turnstile {

using namespace refcount;

namespace {

// A lane without rules of its own, whose hold (of the whole resource) keeps deletes away while a reference is
// added.
constexpr const char* kReferenceOperation = "reference";

// One call of run_once(). Threads: that of its caller.
class Run {
 public:
  Run(LockClient& client, const std::string& operation, const std::string& resource,
      const std::function<WorkResult(Work&)>& function, const RunOnceOptions& options)
      : client_(client),
        operation_(operation),
        resource_(resource),
        function_(function),
        options_(options),
        references_(options.references),
        request_(options.request),
        node_id_(options.request.node_id.empty() ? client.node_id() : options.request.node_id) {
    request_.operation = operation;
    request_.resource = resource;
    if (references_ == nullptr) return;
    // The server has no reference to drop; drop_own() does it here.
    request_.dereference = false;
    // Checking counts under a lock that a pull does not respect would check nothing.
    if (!request_.scope && (is(operations::kDelete) || is(operations::kUpdate))) request_.scope = "resource";
  }

  Expected<RunOnceOutcome> run() {
    if (auto dropped = drop_own(); !dropped) return std::unexpected(dropped.error());
    while (true) {
      auto skip = skip_by_counts();
      if (!skip) return std::unexpected(skip.error());
      if (*skip) return RunOnceOutcome::skipped;
      auto locked = client_.lock(request_, options_.deadline, options_.stop);
      if (!locked) return std::unexpected(locked.error());
      if (locked->acquired()) return work(locked->hold);
      auto joined = join_after_skip();
      if (!joined) return std::unexpected(joined.error());
      if (*joined) return RunOnceOutcome::skipped;
      request_.request_id.clear();  // deleted since: another request, which must not get the old answer
    }
  }

 private:
  bool is(std::string_view operation) const { return operation_ == operation; }
  bool dereferences() const { return is(operations::kDelete) && options_.request.dereference; }

  // S19 for counts of this side: dropped whatever happens then.
  Expected<void> drop_own() {
    if (references_ == nullptr || !dereferences()) return {};
    return references_->release_ref(resource_, node_id_);
  }

  // True: nothing to do here. Error `refused`: not allowed.
  Expected<bool> skip_by_counts() {
    if (references_ == nullptr) return false;
    if (is(operations::kPull)) return references_->add_ref_if_used(resource_, node_id_);
    auto may = references_->can_perform_operation(operation_, resource_);
    if (!may) return std::unexpected(may.error());
    if (may->yes) return false;
    if (dereferences()) return true;  // deleting was only dereferencing: others still use it
    auto count = references_->get_ref_count(resource_);
    if (!count) return std::unexpected(count.error());
    return std::unexpected(
        ClientError{ErrorCode::refused, may->why, "referenced", {count->nodes.begin(), count->nodes.end()}});
  }

  // After the server's skip. True: this node is counted now, or need not be; false: the content is gone
  // again.
  Expected<bool> join_after_skip() {
    if (references_ == nullptr || !is(operations::kPull)) return true;
    auto joined = references_->add_ref_if_used(resource_, node_id_);
    if (!joined || *joined) return joined;
    LockRequest guard;
    guard.operation = kReferenceOperation;
    guard.resource = resource_;
    guard.node_id = node_id_;
    guard.scope = "resource";
    auto locked = client_.lock(guard, options_.deadline, options_.stop);
    if (!locked) return std::unexpected(locked.error());
    auto added = add_if_still_there();
    const auto released = locked->hold.release(WorkResult::succeeded());
    if (added && *added && !released) return std::unexpected(released.error());
    return added;
  }

  // Under a hold of the whole resource: a delete would have voided the pull's completion (S13).
  Expected<bool> add_if_still_there() {
    const auto status = client_.status(operation_, resource_);
    if (!status) return std::unexpected(status.error());
    if (!status->completion || !status->completion->success) return false;
    if (auto added = references_->add_ref(resource_, node_id_); !added) return std::unexpected(added.error());
    return true;
  }

  Expected<RunOnceOutcome> work(Hold& hold) {
    auto skip = skip_by_counts();  // this is the check that counts
    if (!skip) return give_up(hold, skip.error());
    if (*skip) return end_skipped(hold);
    auto status = client_.status(operation_, resource_);
    if (!status) return give_up(hold, status.error());
    Work work{operation_, resource_, node_id_, hold, std::move(status->waiters)};
    const WorkResult result = call(work);
    if (hold.state() == HoldState::lost) return std::unexpected(lost());
    return result.success ? finish(hold, result) : fail(hold, result);
  }

  WorkResult call(Work& work) {
    try {
      return function_(work);
    } catch (const std::exception& error) {
      return WorkResult::failed(error.what());
    } catch (...) {
      return WorkResult::failed("the function threw something that is no std::exception");
    }
  }

  Expected<RunOnceOutcome> finish(Hold& hold, const WorkResult& result) {
    // Nothing is cleared after a delete: while the hold lasts the set is empty, and if it was lost unnoticed,
    // what is in the set is of those who have pulled since.
    if (references_ != nullptr && is(operations::kPull)) {
      auto counted = references_->add_ref(resource_, node_id_);
      if (!counted) return give_up(hold, counted.error());
    }
    const auto released = hold.release(result);
    if (released) return RunOnceOutcome::ran;
    // The set was empty under the hold, so what is in it of this node is what was just added, without a hold.
    if (released.error().code == ErrorCode::lost && references_ != nullptr && is(operations::kPull))
      (void)references_->release_ref(resource_, node_id_);
    return std::unexpected(released.error());
  }

  Expected<RunOnceOutcome> fail(Hold& hold, const WorkResult& result) {
    const auto released = hold.release(result);
    if (!released && released.error().code == ErrorCode::lost) return std::unexpected(released.error());
    const std::string text = result.error.empty() ? "it gave no reason" : result.error;
    return std::unexpected(
        ClientError{ErrorCode::failed,
                    fmt::format("the operation {} on {} failed: {}", operation_, resource_, text),
                    {},
                    {}});
  }

  // The counts say that a pull is done, so it is done for all that wait. A delete that was only dereferencing
  // has deleted nothing: the next in line looks for itself.
  Expected<RunOnceOutcome> end_skipped(Hold& hold) {
    const auto released = hold.release(
        is(operations::kPull) ? WorkResult::succeeded() : WorkResult::failed("other nodes still use it"));
    if (!released && released.error().code != ErrorCode::lost) return std::unexpected(released.error());
    return RunOnceOutcome::skipped;
  }

  // The next in line is told why, and tries.
  Expected<RunOnceOutcome> give_up(Hold& hold, ClientError error) {
    (void)hold.release(WorkResult::failed(error.message));
    return std::unexpected(std::move(error));
  }

  ClientError lost() const {
    return {
        ErrorCode::lost,
        fmt::format("the hold of {} on {} was lost while the function ran: another node may have done the "
                    "same work, so the result does not count",
                    operation_, resource_),
        {},
        {}};
  }

  LockClient& client_;
  const std::string& operation_;
  const std::string& resource_;
  const std::function<WorkResult(Work&)>& function_;
  const RunOnceOptions& options_;
  RefCountManager* const references_;  // null: the server keeps them
  LockRequest request_;
  const std::string node_id_;
};

}  // namespace

inline namespace v1 {

Expected<RunOnceOutcome> run_once(LockClient& client, const std::string& operation,
                                  const std::string& resource,
                                  const std::function<WorkResult(Work&)>& function,
                                  const RunOnceOptions& options) {
  return Run(client, operation, resource, function, options).run();
}

}  // namespace v1
}  // namespace turnstile
