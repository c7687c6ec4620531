// The calls that do not wait, one and many: try_lock, try_lock_all, release_all and add_references.
#include <fmt/format.h>

#include "client/core.h"
#include "client/waiting.h"
#include "turnstile/lock_client.h"

namespace turnstile {
namespace {

using client::BatchBodies;
using client::BatchElement;
using client::Call;
using client::kShortPatience;
using client::LockAnswer;
using client::Requester;

// What try_lock makes of an answer; a place in the queue that is not wanted is left to the caller to give up.
Expected<LockResult> result_of(LockClient::Core& core, const LockRequest& request, const Requester& who,
                               const LockAnswer& answer, LockClient::Clock::time_point sent_at) {
  LockResult result;
  result.request_id = who.request_id;
  switch (answer.state) {
    case LockAnswer::State::acquired: {
      Expected<Hold> hold = core.make_hold(request, who, answer, sent_at);
      if (!hold) return std::unexpected(hold.error());
      result.outcome = LockOutcome::acquired;
      result.hold = std::move(*hold);
      return result;
    }
    case LockAnswer::State::skipped:
      result.outcome = LockOutcome::skipped;
      result.references = answer.references;
      result.work = answer.work;
      return result;
    case LockAnswer::State::cancelled:
      return client::fail(ErrorCode::cancelled, "another call has cancelled this wait");
    case LockAnswer::State::queued:
      break;
  }
  if (!request.stay_when_busy) {
    return client::fail(ErrorCode::busy, answer.waiting.holder.empty()
                                             ? "others are before this request"
                                             : fmt::format("{} holds it", answer.waiting.holder));
  }
  result.outcome = LockOutcome::queued;
  result.waiting = answer.waiting;
  return result;
}

// A server that does not queue refuses; whoever does not want to wait is told the same as by one that does.
ClientError as_busy(ClientError error) {
  if (error.reason == "busy") error.code = ErrorCode::busy;
  return error;
}

bool unwanted(const Expected<LockResult>& result) {
  return !result && result.error().code == ErrorCode::busy && result.error().reason.empty();
}

// What becomes of the round trips behind one that no server has answered, after all retries.
enum class Rest : uint8_t { unsent, sent };

// Every element of `bodies` in round trips of at most 1,000; a round trip that fails, fails for its elements.
// Those of one that was not sent have the error of the one that ended it.
template <class T, class Each>
void call_batch(client::Caller& caller, BatchBodies bodies, Rest rest,
                std::optional<std::vector<BatchElement<T>>> (*read)(std::string_view), Each each) {
  size_t index = 0;
  std::optional<ClientError> away;
  for (BatchBodies::Body& body : bodies.take()) {
    if (away) {
      for (size_t i = 0; i < body.count; ++i, ++index)
        each(index, nullptr, LockClient::Clock::time_point{}, *away, false);
      continue;
    }
    const auto reply = caller.call({.target = "/batch", .body = std::move(body.text)});
    Expected<std::vector<BatchElement<T>>> answers = client::read_reply(reply, read);
    if (answers && answers->size() != body.count) {
      answers = std::unexpected(client::not_turnstile(reply->server, 200));
    }
    if (rest == Rest::unsent && !answers && answers.error().code == ErrorCode::unavailable)
      away = answers.error();
    for (size_t i = 0; i < body.count; ++i, ++index) {
      if (!answers) {
        each(index, nullptr, LockClient::Clock::time_point{}, answers.error(),
             !reply && reply.error().maybe_done);
      } else {
        BatchElement<T>& element = (*answers)[i];
        each(index, element.answer ? &*element.answer : nullptr, reply->sent_at,
             client::error_of(element.status, element.refusal), reply->maybe_done);
      }
    }
  }
}

}  // namespace

Expected<LockResult> LockClient::try_lock(const LockRequest& request, Clock::time_point deadline,
                                          std::stop_token stop) {
  if (auto fault = client::fault_of(request)) return client::fail(ErrorCode::invalid, std::move(*fault));
  const Requester who = core_->requester_of(request);
  const auto reply = core_->caller().call({.target = "/lock",
                                           .body = client::lock_body({.who = who, .request = request}),
                                           .deadline = deadline,
                                           .stop = std::move(stop)});
  if (!reply) {
    // Nobody but us knows this request's id.
    if (reply.error().maybe_done) client::cancel_or_release(core_->caller(), who, false);
    return std::unexpected(as_busy(reply.error().error));
  }
  const Expected<LockAnswer> answer = client::read_reply(reply, client::read_lock);
  if (!answer) return std::unexpected(answer.error());
  Expected<LockResult> result = result_of(*core_, request, who, *answer, reply->sent_at);
  if (unwanted(result)) client::cancel_or_release(core_->caller(), who);
  return result;
}

Expected<std::vector<Expected<LockResult>>> LockClient::try_lock_all(
    const std::vector<LockRequest>& requests) {
  std::vector<Expected<LockResult>> results;
  std::vector<Requester> requesters;
  BatchBodies locks, cancels;
  std::vector<size_t> batched;  // indices
  results.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    results.emplace_back(LockResult{});
    requesters.push_back(core_->requester_of(requests[i]));
    if (auto fault = client::fault_of(requests[i])) {
      results[i] = client::fail(ErrorCode::invalid, std::move(*fault));
      continue;
    }
    if (requests[i].monitor) {
      results[i] = try_lock(requests[i]);  // a batch makes no bonds
      continue;
    }
    batched.push_back(i);
    locks.add(client::lock_body({.who = requesters[i], .request = requests[i]}, "lock"));
  }
  bool answered = batched.empty();
  call_batch(core_->caller(), std::move(locks), Rest::unsent, client::read_lock_batch,
             [&](size_t index, const LockAnswer* answer, Clock::time_point sent_at, const ClientError& error,
                 bool maybe_done) {
               const size_t i = batched[index];
               answered = answered || error.code != ErrorCode::unavailable || answer != nullptr;
               results[i] = answer != nullptr
                                ? result_of(*core_, requests[i], requesters[i], *answer, sent_at)
                                : Expected<LockResult>(std::unexpected(as_busy(error)));
               const bool ghost = answer == nullptr && maybe_done;  // nobody but us knows this request's id
               if (!ghost && !unwanted(results[i])) return;
               cancels.add(client::cancel_body(requesters[i], "cancel"));
               if (!ghost) return;
               const WorkResult given_back = WorkResult::failed("the caller never heard that it had it");
               cancels.add(client::unlock_body(requesters[i], 0, given_back, "unlock"));
             });
  for (BatchBodies::Body& body : cancels.take()) {
    Call call{.target = "/batch", .body = std::move(body.text)};
    if (!answered) call.timeout = kShortPatience.timeout, call.retries = 0, call.over_hand_over = false;
    (void)core_->caller().call(call);
  }
  if (!answered && batched.size() == requests.size()) return std::unexpected(results.front().error());
  return results;
}

Expected<std::vector<Expected<Released>>> LockClient::release_all(std::vector<Hold>& holds,
                                                                  const WorkResult& result) {
  std::vector<Expected<Released>> results;
  std::vector<size_t> batched;
  std::vector<bool> maybe_done;
  BatchBodies unlocks;
  for (size_t i = 0; i < holds.size(); ++i) {
    results.emplace_back(Released{});
    Hold::State* const state = holds[i].state_.get();
    if (state == nullptr) {
      results[i] = client::fail(ErrorCode::invalid, "this Hold is empty");
      continue;
    }
    if (auto earlier = state->begin_release(result)) {
      results[i] = std::move(*earlier);
      continue;
    }
    const Hold::State::Attempt attempt = state->attempt_to_release();
    unlocks.add(client::unlock_body(state->granted().who, state->granted().token, attempt.result, "unlock"));
    maybe_done.push_back(attempt.maybe_done);
    batched.push_back(i);
  }
  // Others wait for each of these, and whoever holds it has ended it: all are tried.
  call_batch(
      core_->caller(), std::move(unlocks), Rest::sent, client::read_unlock_batch,
      [&](size_t index, Released* released, Clock::time_point, const ClientError& error, bool lost_answer) {
        client::Unlocked outcome =
            released != nullptr ? client::Unlocked{.released = std::move(*released)}
                                : client::judge_refused_unlock(error, maybe_done[index] || lost_answer);
        results[batched[index]] = holds[batched[index]].state_->finish_release(std::move(outcome));
      });
  return results;
}

Expected<std::vector<Expected<ReferenceStatus>>> LockClient::add_references(
    const std::vector<std::string>& resources) {
  std::vector<Expected<ReferenceStatus>> results(resources.size());
  BatchBodies adds;
  std::vector<size_t> batched;  // indices
  for (size_t i = 0; i < resources.size(); ++i) {
    if (auto fault = client::fault_of_name(resources[i])) {
      results[i] = client::fail(ErrorCode::invalid, std::move(*fault));
      continue;
    }
    batched.push_back(i);
    adds.add(client::reference_body(resources[i], node_id(), "refs/add"));
  }
  bool answered = batched.size() < resources.size() || resources.empty();
  call_batch(core_->caller(), std::move(adds), Rest::unsent, client::read_references_batch,
             [&](size_t index, ReferenceStatus* added, Clock::time_point, const ClientError& error, bool) {
               answered = answered || added != nullptr || error.code != ErrorCode::unavailable;
               if (added != nullptr)
                 results[batched[index]] = std::move(*added);
               else
                 results[batched[index]] = std::unexpected(error);
             });
  if (!answered) return std::unexpected(results.front().error());
  return results;
}

}  // namespace turnstile
