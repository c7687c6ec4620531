#include "client/caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client/random_id.h"
#include "client/server_url.h"

namespace turnstile::client {
namespace {

constexpr Milliseconds kLongestPause{2'000};

bool worth_another_try(int status) { return status >= 500 || status == 429 || status == 408; }

// Whether the server said that it did nothing. Other 5xx leave that open (S32).
bool surely_not_done(int status, std::string_view code) {
  return status == 429 || status == 408 || code == "not_leader" || code == "shutting_down";
}

}  // namespace

// What a call remembers from one try to the next.
struct Caller::Tries {
  int count = 0;
  bool worth_another = false;
  bool maybe_done = false;
  Milliseconds least_pause{0};  // Retry-After
  bool at_once = false;         // a leader was named
};

Caller::Caller(const ClientSettings& settings, std::shared_ptr<Transport> transport,
               std::shared_ptr<const Timing> timing, std::stop_token stop)
    : settings_(settings),
      transport_(std::move(transport)),
      timing_(std::move(timing)),
      stop_(std::move(stop)) {}

std::string Caller::server() const {
  const Locked lock(mutex_);
  return leader_.empty() ? settings_.servers[index_] : leader_;
}

void Caller::move_on_from(const std::string& server) {
  const Locked lock(mutex_);
  // Others may have moved on already.
  if (!leader_.empty()) {
    if (leader_ == server) leader_.clear();
  } else if (settings_.servers[index_] == server) {
    index_ = (index_ + 1) % settings_.servers.size();
  }
}

// Not from https to http: the bearer token would travel in the clear.
void Caller::follow(const std::string& from, const std::string& leader) {
  const std::optional<ServerUrl> here = parse_server_url(from), there = parse_server_url(leader);
  if (!there || (here && here->tls && !there->tls)) return move_on_from(from);
  const Locked lock(mutex_);
  leader_ = leader;
}

Milliseconds Caller::pause_after(int failures) const {
  const int doublings = std::clamp(failures - 1, 0, 10);
  return with_jitter(std::min(kLongestPause, settings_.retry_interval * (1 << doublings)));
}

Milliseconds Caller::timeout_of(const Call& call) const {
  const Milliseconds timeout = call.timeout.count() > 0 ? call.timeout : settings_.request_timeout;
  if (call.deadline == Steady::time_point::max()) return timeout;
  const auto left = std::chrono::ceil<Milliseconds>(call.deadline - timing_->now());
  return std::clamp(left, Milliseconds(1), timeout);
}

std::expected<Reply, CallFailure> Caller::call(const Call& call) {
  Tries tries;
  for (;;) {
    Reply reply{.server = server(), .sent_at = timing_->now()};
    auto answer = transport_->exchange({.server = reply.server,
                                        .post = call.post,
                                        .target = call.target,
                                        .body = call.body,
                                        .timeout = timeout_of(call),
                                        .stop = stop_of(call)});
    if (settings_.on_call) report(call, reply, tries, answer ? answer->status : 0);
    if (answer && answer->status == 200) {
      reply.body = std::move(answer->body);
      reply.maybe_done = tries.maybe_done;
      return reply;
    }
    CallFailure failure =
        answer ? refused(*answer, reply.server, tries) : failed(answer.error(), reply.server, tries);
    if (!tries.worth_another || !again(call, tries, failure)) return std::unexpected(std::move(failure));
  }
}

void Caller::report(const Call& call, const Reply& reply, const Tries& tries, int status) const {
  const std::string_view target = call.target;
  settings_.on_call(
      {.target = target.substr(0, target.find('?')),
       .server = reply.server,
       .status = status,
       .attempt = tries.count + 1,
       .took = std::chrono::duration_cast<std::chrono::microseconds>(timing_->now() - reply.sent_at)});
}

CallFailure Caller::failed(const TransportError& error, const std::string& server, Tries& tries) {
  tries.maybe_done |= error.maybe_sent;
  CallFailure failure{
      .error = error_of(error, server), .maybe_done = tries.maybe_done, .cut = error.fault == Fault::broken};
  tries.worth_another = failure.error.code == ErrorCode::unavailable;
  if (tries.worth_another) move_on_from(server);
  return failure;
}

CallFailure Caller::refused(const Answer& answer, const std::string& server, Tries& tries) {
  const std::optional<Refusal> refusal = read_refusal(answer.body);
  CallFailure failure{
      .error = refusal ? error_of(answer.status, *refusal) : not_turnstile(server, answer.status),
      .cut = !refusal && answer.status >= 500};
  tries.worth_another = worth_another_try(answer.status);
  if (tries.worth_another) {
    // A proxy answers for a server that is away in a language of its own.
    if (!refusal) failure.error.code = ErrorCode::unavailable;
    tries.maybe_done |= !surely_not_done(answer.status, failure.error.reason);
    tries.least_pause =
        std::min<Milliseconds>(kLongestPause, answer.retry_after.value_or(std::chrono::seconds(0)));
    tries.at_once = refusal && !refusal->leader.empty() && refusal->leader != server;
    tries.at_once ? follow(server, refusal->leader) : move_on_from(server);
  }
  failure.maybe_done = tries.maybe_done;
  return failure;
}

// Pauses. False: `failure` is what to tell the caller.
bool Caller::again(const Call& call, Tries& tries, CallFailure& failure) {
  const int retries = call.retries >= 0 ? call.retries : settings_.max_retries;
  if (tries.count == retries) {
    if (retries > 0) failure.error.message += fmt::format(" (tried {} times)", retries + 1);
    return false;
  }
  ++tries.count;
  const Milliseconds pause = std::exchange(tries.at_once, false)
                                 ? Milliseconds(0)
                                 : std::max(pause_after(tries.count), std::exchange(tries.least_pause, {}));
  const Steady::time_point until = timing_->now() + pause;
  if (until >= call.deadline) return false;
  if (settings_.on_log) {
    settings_.on_log(
        fmt::format("{}: {}; trying again in {} ms", call.target, failure.error.message, pause.count()));
  }
  if (timing_->sleep_until(until, stop_of(call))) return true;
  failure.error = make_error(ErrorCode::cancelled, "stopped by the caller");
  return false;
}

}  // namespace turnstile::client
