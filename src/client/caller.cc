#include "client/caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "client/random_id.h"

namespace turnstile::client {
namespace {

constexpr int kMostHops = 3;  // from one that does not lead to another, without a pause

bool worth_another_try(int status) { return status >= 500 || status == 429 || status == 408; }

// The servers are there, and one of them leads or will.
bool is_hand_over(std::string_view code) {
  return code == "not_leader" || code == "no_leader" || code == "outcome_unknown";
}

// Whether the server said that it did nothing. Other 5xx leave that open (S32).
bool surely_not_done(int status, std::string_view code) {
  return status == 429 || status == 408 || code == "not_leader" || code == "no_leader" ||
         code == "shutting_down";
}

}  // namespace

bool may_pass(const Answer& answer) {
  if (worth_another_try(answer.status)) return true;
  const std::optional<Refusal> refusal = read_refusal(answer.body);
  return refusal && is_hand_over(refusal->code);
}

// What a call remembers from one try to the next.
struct Caller::Tries {
  struct Said {
    std::string server, message;
  };

  enum class Worth : uint8_t { nothing, another_server, another_try };
  Worth worth = Worth::nothing;
  int count = 0;     // of all tries
  int rounds = 0;    // that are over: every server was asked
  int in_round = 0;  // asked in this one
  int hops = 0;      // since the last pause
  bool maybe_done = false;
  bool at_once = false;         // a leader was named
  bool busy = false;            // the server wants a pause, whoever is asked next
  Milliseconds least_pause{0};  // Retry-After
  Steady::time_point hand_over = Steady::time_point::max();  // since when there is one
  std::vector<Said> said;                                    // the last word of each server
};

Caller::Caller(const ClientSettings& settings, std::shared_ptr<Transport> transport,
               std::shared_ptr<const Timing> timing, std::stop_token stop)
    : settings_(settings),
      transport_(std::move(transport)),
      timing_(std::move(timing)),
      stop_(std::move(stop)),
      servers_(settings_) {}

Milliseconds Caller::pause_after(int failures, Milliseconds longest) const {
  const int doublings = std::clamp(failures - 1, 0, 10);
  return with_jitter(std::min(longest, settings_.retry_interval * (1 << doublings)));
}

Milliseconds Caller::timeout_of(const Call& call, const Tries& tries) const {
  const Milliseconds timeout = call.timeout.count() > 0 ? call.timeout : settings_.request_timeout;
  if (call.deadline == Steady::time_point::max()) return timeout;
  auto left = std::chrono::ceil<Milliseconds>(call.deadline - timing_->now());
  if (call.timeout.count() == 0) left /= std::max(1, int(servers_.count()) - tries.in_round);
  return std::clamp(left, Milliseconds(1), timeout);
}

std::expected<Reply, CallFailure> Caller::call(const Call& call) {
  Tries tries;
  for (;;) {
    Reply reply{.server = servers_.current(), .sent_at = timing_->now()};
    auto answer = transport_->exchange({.server = reply.server,
                                        .post = call.post,
                                        .target = call.target,
                                        .body = call.body,
                                        .timeout = timeout_of(call, tries),
                                        .stop = stop_of(call)});
    if (settings_.on_call) report(call, reply, tries, answer ? answer->status : 0);
    if (answer && answer->status == 200) {
      if (call.of_leader) servers_.answered(reply.server);
      reply.body = std::move(answer->body);
      reply.maybe_done = tries.maybe_done;
      return reply;
    }
    ++tries.count;
    CallFailure failure = answer ? refused(*answer, reply.server, tries)
                                 : failed(answer.error(), reply.server, reply.sent_at, tries);
    if (!again(call, tries, failure)) return std::unexpected(std::move(failure));
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

CallFailure Caller::failed(const TransportError& error, const std::string& server, Steady::time_point sent_at,
                           Tries& tries) {
  tries.maybe_done |= error.maybe_sent;
  CallFailure failure{
      .error = error_of(error, server), .maybe_done = tries.maybe_done, .cut = error.fault == Fault::broken};
  tries.worth = failure.error.code == ErrorCode::unavailable ? Tries::Worth::another_try
                : error.fault == Fault::untrusted            ? Tries::Worth::another_server
                                                             : Tries::Worth::nothing;
  if (tries.worth == Tries::Worth::nothing) return failure;
  const Steady::time_point now = timing_->now();
  servers_.suspect(server, now - sent_at, now);
  servers_.move_on_from(server, now);
  std::erase_if(tries.said, [&](const Tries::Said& said) { return said.server == server; });
  tries.said.push_back({server, error.message});
  return failure;
}

bool Caller::follow(const std::string& server, const Refusal& refusal, ClientError& error) {
  const Steady::time_point now = timing_->now();
  if (refusal.leader.empty()) {
    servers_.move_on_from(server, now);
    return false;
  }
  const ServerList::Follow how = servers_.follow(server, refusal.leader, now);
  if (how == ServerList::Follow::stranger) {
    error.message = fmt::format(
        "{} says that {} leads, which is not one of the servers that this client was given, and a credential "
        "is "
        "not taken to a stranger: name all servers",
        server, refusal.leader);
  }
  return how == ServerList::Follow::yes;
}

CallFailure Caller::refused(const Answer& answer, const std::string& server, Tries& tries) {
  const std::optional<Refusal> refusal = read_refusal(answer.body);
  const bool hand_over = refusal && is_hand_over(refusal->code);
  CallFailure failure{
      .error = refusal ? error_of(answer.status, *refusal) : not_turnstile(server, answer.status),
      .cut = !refusal && answer.status >= 500};
  tries.worth =
      hand_over || worth_another_try(answer.status) ? Tries::Worth::another_try : Tries::Worth::nothing;
  if (tries.worth != Tries::Worth::nothing) {
    // A proxy answers for a server that is away in a language of its own; and a redirection that could not be
    // followed is no fault of the caller's.
    if (!refusal || hand_over) failure.error.code = ErrorCode::unavailable;
    tries.maybe_done |= !surely_not_done(answer.status, failure.error.reason);
    tries.busy = answer.status == 429;
    if (hand_over) {
      tries.hand_over = std::min(tries.hand_over, timing_->now());
    } else {
      tries.least_pause =
          std::min<Milliseconds>(kLongestPause, answer.retry_after.value_or(std::chrono::seconds(0)));
    }
    tries.at_once = follow(server, refusal.value_or(Refusal{}), failure.error);
    std::erase_if(tries.said, [&](const Tries::Said& said) { return said.server == server; });
    tries.said.push_back({server, failure.error.message});
  }
  failure.maybe_done = tries.maybe_done;
  return failure;
}

// What to tell the caller.
void Caller::give_up(const Tries& tries, CallFailure& failure) const {
  if (failure.error.code != ErrorCode::unavailable) return;
  if (tries.said.size() < 2) {
    if (tries.count > 1) failure.error.message += fmt::format(" (tried {} times)", tries.count);
    return;
  }
  const bool lead = tries.hand_over != Steady::time_point::max();
  failure.error.message = lead ? "no server leads: asked" : "no server answered: tried";
  for (const Tries::Said& said : tries.said) {
    failure.error.message +=
        fmt::format("{} {} ({})", &said == &tries.said.front() ? "" : ",", said.server, said.message);
  }
}

// Pauses. False: `failure` is what to tell the caller.
bool Caller::again(const Call& call, Tries& tries, CallFailure& failure) {
  if (tries.worth == Tries::Worth::nothing) return false;
  const int retries = call.retries >= 0 ? call.retries : settings_.max_retries;
  const Steady::time_point now = timing_->now();
  const bool may_repeat = (retries > 0 && !call.once) || !tries.maybe_done;
  Milliseconds pause{0};
  if (std::exchange(tries.at_once, false) && tries.hops < kMostHops) {
    ++tries.hops;
  } else if (const size_t asked = size_t(++tries.in_round);
             asked >= servers_.count() || std::exchange(tries.busy, false)) {
    // A server that cannot be trusted, and no other: nothing will change that.
    const bool over = tries.worth == Tries::Worth::another_server && tries.said.size() >= servers_.count();
    const bool lead = tries.hand_over != Steady::time_point::max();
    const bool hand_over = lead && call.over_hand_over && now - tries.hand_over < settings_.hand_over;
    if (over || (tries.rounds >= retries && !(hand_over && may_repeat))) {
      give_up(tries, failure);
      return false;
    }
    ++tries.rounds;
    tries.in_round = tries.hops = 0;
    pause = std::max(pause_after(tries.rounds, lead ? kHandOverPause : kLongestPause),
                     std::exchange(tries.least_pause, {}));
  }
  if (!may_repeat || now + pause >= call.deadline) {
    give_up(tries, failure);
    return false;
  }
  if (settings_.on_log) {
    settings_.on_log(fmt::format("{}: {}; trying again in {} ms",
                                 std::string_view(call.target).substr(0, call.target.find('?')),
                                 failure.error.message, pause.count()));
  }
  if (timing_->sleep_until(now + pause, stop_of(call))) return true;
  failure.error = make_error(ErrorCode::cancelled, "stopped by the caller");
  return false;
}

Caller::StreamEnd Caller::stream(Exchange exchange, const Transport::Bytes& bytes) {
  const std::stop_token stop = exchange.stop;
  for (int hops = 0;; ++hops) {
    const std::string server = servers_.current();
    const Steady::time_point began = timing_->now();
    ServerList::OpenStream open(servers_, server);
    const std::stop_callback by_caller(stop, [&open] { open.stop().request_stop(); });
    exchange.server = server;
    exchange.stop = open.stop().get_token();
    bool heard = false;
    auto answer = transport_->stream(exchange, [&](std::string_view some) {
      if (!std::exchange(heard, true)) servers_.answered(server);
      return bytes(some);
    });
    const Steady::time_point now = timing_->now();
    if (!answer) {
      const bool by_us = answer.error().fault == Fault::stopped && !stop.stop_requested();
      if (by_us) {
        answer.error() = {.fault = Fault::broken, .maybe_sent = true, .message = "another server leads now"};
      } else if (answer.error().fault != Fault::stopped) {
        // Of one that was silent for long it is not known how long it has been away.
        servers_.suspect(server, heard ? Steady::duration(0) : now - began, now);
        servers_.move_on_from(server, now);
      }
      return {std::move(answer), server};
    }
    if (answer->status == 200) return {std::move(answer), server};
    ClientError ignored;
    if (!may_pass(*answer) || !follow(server, read_refusal(answer->body).value_or(Refusal{}), ignored) ||
        hops >= kMostHops)
      return {std::move(answer), server};
  }
}

}  // namespace turnstile::client
