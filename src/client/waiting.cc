#include "client/waiting.h"

#include <fmt/format.h>

#include "client/sse_parser.h"
#include "client/subscription_state.h"

namespace turnstile::client {
namespace {

constexpr Milliseconds kFirstComment{2'000};  // a stream that has not begun by then is held back by a proxy
constexpr Milliseconds kReportEvery{1'000};
constexpr Milliseconds kSliceOfSeveral{8'000};
constexpr int kCutsToChange = 2;
constexpr Milliseconds kLeastTry{100};
constexpr int kGrantsInVain = 3;
// Leaving a queue. A server that has just not answered gets one more word, not several: the caller wants to
// go, and the grant that nobody claims, or the lease, ends what it does not hear of.
constexpr Milliseconds kLeaving{1'000}, kLeavingInVain{500};
constexpr int kRetriesToLeave = 2;

bool same(const WaitingStatus& a, const WaitingStatus& b) {
  return a.position == b.position && a.holder == b.holder && a.holder_since == b.holder_since &&
         a.done == b.done && a.total == b.total;
}

bool may_pass(const ClientError& error) {
  return error.code == ErrorCode::unavailable || error.reason == "queue_full" ||
         error.reason == "too_many_requests";
}

}  // namespace

void cancel_or_release(Caller& caller, const Requester& who, bool answers) {
  const Patience patience{.timeout = answers ? kLeaving : kLeavingInVain,
                          .retries = answers ? kRetriesToLeave : 0,
                          .over_hand_over = false};
  const auto reply = caller.call({.target = "/cancel",
                                  .body = cancel_body(who),
                                  .timeout = patience.timeout,
                                  .retries = patience.retries,
                                  .over_hand_over = patience.over_hand_over});
  const Expected<bool> cancelled = read_reply(reply, read_cancel);
  // Not known: one more word to a server that does not answer would only take time. The grant that we do not
  // claim, or the lease, ends it.
  if (!cancelled || *cancelled) return;
  // It did not wait: either it never got there, or it was granted and our own long poll had claimed it.
  (void)unlock(caller, who, 0, WorkResult::failed("cancelled by the caller"), false, patience);
}

Waiting::Waiting(LockClient::Core& core, const LockRequest& request, Steady::time_point deadline,
                 std::stop_token stop)
    : core_(core),
      request_(request),
      who_(core.requester_of(request)),
      deadline_(deadline),
      stop_(std::move(stop)),
      way_(core.settings().wait_by == WaitBy::automatic ? WaitBy::long_poll : core.settings().wait_by),
      may_change_way_(core.settings().wait_by == WaitBy::automatic) {}

Expected<LockResult> Waiting::run() {
  Outcome outcome = ask(Milliseconds(0));
  while (!outcome) {
    if (out_of_time()) return give_up();
    if (way_ == WaitBy::long_poll) {
      outcome = long_poll();
    } else if (way_ == WaitBy::stream) {
      outcome = stream();
    } else {
      outcome = status_poll();
    }
  }
  return std::move(*outcome);
}

bool Waiting::out_of_time() const { return stop_.stop_requested() || core_.timing().now() >= deadline_; }

Milliseconds Waiting::time_left(Milliseconds at_most) const {
  if (deadline_ == Steady::time_point::max()) return at_most;
  const auto left = std::chrono::ceil<Milliseconds>(deadline_ - core_.timing().now());
  return std::clamp(left, Milliseconds(1), std::max(at_most, Milliseconds(1)));
}

Expected<LockResult> Waiting::give_up() {
  leave();
  if (stop_.stop_requested()) return fail(ErrorCode::cancelled, "stopped by the caller while waiting");
  if (!queued_ && last_error_) return std::unexpected(*last_error_);
  return fail(ErrorCode::timed_out, "the deadline passed before it was this node's turn");
}

// Nobody was ever asked: there is nothing to leave. But a caller with a request id may have a place from
// before.
void Waiting::leave() {
  if (asked_somebody_ || !request_.request_id.empty()) cancel_or_release(core_.caller(), who_, !failed_);
}

Waiting::Outcome Waiting::ask(Milliseconds wait) {
  // A caller that has neither a deadline nor a place in the queue is told soon that there is no server.
  const bool patient = queued_ || deadline_ != Steady::time_point::max();
  Call call{.target = "/lock",
            .body = lock_body({.who = who_, .request = request_, .wait = wait}),
            .timeout = wait + core_.settings().request_timeout,
            .retries = patient ? 0 : -1,
            .over_hand_over = !patient,  // the loop does
            .stop = stop_};
  // The server ends a long poll itself, in time; a try that it does not answer ends soon after the deadline.
  if (patient && deadline_ != Steady::time_point::max()) {
    Milliseconds most = time_left(Milliseconds::max()) + Milliseconds(100);
    // Of several servers the first may hang: that must not take the time of the others.
    if (wait.count() == 0) most = std::max(most / core_.caller().servers(), kLeastTry);
    call.timeout = std::min(call.timeout, most);
  }
  last_asked_ = core_.timing().now();
  const auto reply = core_.caller().call(call);
  failed_ = !reply;
  asked_somebody_ |= reply || reply.error().maybe_done;
  if (!reply) {
    note_cut(reply.error(), wait, last_asked_);
    return not_answered(reply.error());
  }
  failures_ = cuts_ = 0;
  last_error_.reset();
  Expected<LockAnswer> answer = read_reply(reply, read_lock);
  if (!answer) return std::unexpected(answer.error());
  return decided(*answer, reply->sent_at);
}

void Waiting::note_cut(const CallFailure& failure, Milliseconds wait, Steady::time_point began) {
  if (wait.count() == 0 || !failure.cut) return;
  const bool early = core_.timing().now() - began < wait * 4 / 5;
  cuts_ = early ? cuts_ + 1 : 0;
  if (may_change_way_ && cuts_ >= kCutsToChange) way_ = WaitBy::stream;
}

Waiting::Outcome Waiting::not_answered(const CallFailure& failure) {
  const ClientError& error = failure.error;
  if (error.code == ErrorCode::cancelled) return std::nullopt;  // run() sees the stop, and leaves
  if (!may_pass(error)) return std::unexpected(error);
  last_error_ = error;
  if (!queued_ && deadline_ == Steady::time_point::max()) {
    if (failure.maybe_done) leave();
    return std::unexpected(error);
  }
  const Steady::time_point until = core_.timing().now() + core_.caller().pause_after(++failures_);
  core_.timing().sleep_until(std::min(until, deadline_), stop_);
  return std::nullopt;
}

Waiting::Outcome Waiting::decided(const LockAnswer& answer, Steady::time_point sent_at) {
  LockResult result;
  result.request_id = who_.request_id;
  switch (answer.state) {
    case LockAnswer::State::acquired:
      return acquired(answer, sent_at);
    case LockAnswer::State::skipped:
      result.outcome = LockOutcome::skipped;
      result.references = answer.references;
      result.work = answer.work;
      return result;
    case LockAnswer::State::cancelled:
      return fail(ErrorCode::cancelled, "another call has cancelled this wait");
    case LockAnswer::State::queued:
      queued_ = true;
      report(answer.waiting);
  }
  return std::nullopt;
}

Waiting::Outcome Waiting::acquired(const LockAnswer& answer, Steady::time_point sent_at) {
  LockResult result;
  result.request_id = who_.request_id;
  Expected<Hold> hold = core_.make_hold(request_, who_, answer, sent_at);
  if (!hold) return std::unexpected(hold.error());
  result.hold = std::move(*hold);
  // All we know of the lease's begin is that it was after the long poll was sent. If that is long ago, a
  // renewal makes it certain that there is time left to work in.
  const bool stale = request_.lease.count() > 0 && core_.timing().now() - sent_at > request_.lease / 3;
  if (stale) {
    const Expected<void> renewed = result.hold.renew();
    if (!renewed && renewed.error().code == ErrorCode::lost) {
      if (++grants_in_vain_ < kGrantsInVain) return std::nullopt;  // and ask again
      return fail(ErrorCode::lost,
                  fmt::format("{} times the lease of {} ms was over before the answer was here: "
                              "ask for a longer one",
                              grants_in_vain_, request_.lease.count()));
    }
  }
  result.outcome = LockOutcome::acquired;
  return result;
}

Waiting::Outcome Waiting::long_poll() {
  Milliseconds slice = core_.settings().long_poll;
  // A server that hangs is noticed when it ought to have answered; where there are others, soon.
  if (core_.caller().has_several()) slice = std::min(slice, kSliceOfSeveral);
  // Each answer tells the position and the holder's progress anew.
  if (request_.on_waiting) slice = std::min(slice, kReportEvery);
  return ask(time_left(slice));
}

// Whether to ask because of it. The others tell of somebody else's turn.
bool Waiting::asks_for_me(const Event& event) const {
  const bool mine =
      event.node_id == who_.node_id && (event.request_id.empty() || event.request_id == who_.request_id);
  return event.event == "completed" || event.event == "reset" ||
         (event.event == "failed" && event.permanent) ||
         (mine && (event.event == "granted" || event.event == "refused" || event.event == "cancelled"));
}

Waiting::Outcome Waiting::stream() {
  Outcome outcome;
  SseParser parser;
  bool heard = false;
  const std::string target = stream_target({.operation = who_.operation,
                                            .resource = who_.resource,
                                            .prefix = {},
                                            .after = {},
                                            .node_id = who_.node_id,
                                            .request_id = who_.request_id});
  const bool endless = deadline_ == Steady::time_point::max();
  // The stream stays open, as this waiter's bond, while the callback asks.
  const auto ask_now = [&] {
    outcome = ask(Milliseconds(0));
    return !outcome && !failed_ && !out_of_time();
  };
  const auto [answer, server] =
      core_.caller().stream({.target = target,
                             .body = {},
                             .last_event_id = {},
                             .timeout = endless ? Milliseconds(0) : time_left(Milliseconds::max()),
                             .silence = 2 * core_.settings().heartbeat,
                             .first_byte = kFirstComment,
                             .stop = stop_},
                            [&](std::string_view bytes) {
                              heard = true;
                              bool wanted = core_.timing().now() - last_asked_ >= core_.settings().long_poll;
                              parser.feed(bytes, [&](const SseEvent& event) {
                                const std::optional<Event> read = read_event(event.data);
                                wanted = wanted || (read && asks_for_me(*read));
                                return true;
                              });
                              if (request_.on_waiting && core_.timing().now() - told_at_ >= kReportEvery)
                                wanted = true;
                              return !wanted || ask_now();
                            });
  if (outcome || out_of_time()) return outcome;
  // Held back on the way: not by a server that is away, or that does not lead.
  const bool away = answer ? answer->status != 200 : answer.error().fault == Fault::unreachable;
  if (!heard && may_change_way_ && !away) {
    way_ = WaitBy::status_poll;
  }
  // It ended, for whatever reason; before it is opened again, or another way is taken, ask what was missed.
  const Steady::time_point until = core_.timing().now() + core_.caller().pause_after(heard ? 1 : ++failures_);
  if (!core_.timing().sleep_until(std::min(until, deadline_), stop_)) return std::nullopt;
  return ask(Milliseconds(0));
}

Waiting::Outcome Waiting::status_poll() {
  const Steady::time_point next = core_.timing().now() + core_.settings().status_interval;
  if (!core_.timing().sleep_until(std::min(next, deadline_), stop_) || out_of_time()) return std::nullopt;
  const auto reply = core_.caller().call({.post = false,
                                          .target = Target("/lock/status")
                                                        .with("type", who_.operation)
                                                        .with("resource_id", who_.resource)
                                                        .with("node_id", who_.node_id)
                                                        .with("request_id", who_.request_id)
                                                        .take(),
                                          .body = {},
                                          .retries = 0,
                                          .over_hand_over = false,
                                          .stop = stop_});
  failed_ = !reply;
  if (!reply) return not_answered(reply.error());
  Expected<OwnStatus> own = read_reply(reply, read_status);
  if (!own) return std::unexpected(own.error());
  // Acquired, ended, or not in the queue any more: the answer to POST /lock says which.
  if (own->acquired || own->completed || own->position == 0) return ask(Milliseconds(0));
  WaitingStatus status{.position = own->position, .holder = {}, .holder_since = {}, .done = {}, .total = {}};
  if (const auto& holder = own->lane.holder) {
    status.holder = holder->node_id;
    status.holder_since = holder->since;
    status.done = holder->done;
    status.total = holder->total;
  }
  report(status);
  return std::nullopt;
}

void Waiting::report(const WaitingStatus& status) {
  if (!request_.on_waiting) return;
  const Steady::time_point now = core_.timing().now();
  if (told_ && (same(*told_, status) || now - told_at_ < kReportEvery)) return;
  told_ = status;
  told_at_ = now;
  try {
    request_.on_waiting(status);
  } catch (...) {  // the caller's own; it must not pass through curl, nor cost the place in the queue
  }
}

}  // namespace turnstile::client
