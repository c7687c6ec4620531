// One call to "the server", whichever of the list that is: what is retried, where, and how soon.
#pragma once

#include <memory>
#include <string>

#include "client/errors.h"
#include "client/server_list.h"
#include "client/timing.h"
#include "client/transport.h"
#include "turnstile/error.h"
#include "turnstile/settings.h"

namespace turnstile::client {

struct Call {
  bool post = true;
  std::string target{};
  std::string body{};
  // Of one try; 0: the settings' request_timeout, and where there is a deadline, what is left until then in
  // equal parts for the servers not yet asked.
  Milliseconds timeout{0};
  // -1: the settings' max_retries. 0: what may have been done is not asked for again.
  int retries = -1;
  bool once = false;           // done twice it would do harm: likewise, whatever `retries` says
  bool over_hand_over = true;  // goes on while servers say that one of them will lead
  bool of_leader = true;       // only one that leads answers it with 200
  Steady::time_point deadline = Steady::time_point::max();  // of all tries together
  std::stop_token stop{};
};

struct Reply {
  std::string body{};          // of an answer 200
  std::string server{};        // who gave it
  Steady::time_point sent_at;  // the try that was answered
  bool maybe_done = false;     // a try before it may have had its effect
};

struct CallFailure {
  ClientError error{};
  // A try before this answer may have had its effect although we never heard so.
  bool maybe_done = false;
  // The last try got as far as a server or proxy, and was cut off or answered for by one (502, 504).
  bool cut = false;
};

// What another server may answer is asked of the next one: time-outs, broken connections, 5xx, 408 and 429.
// When all were asked, there is a pause that doubles, up to 2 s, with jitter. A 307 `not_leader` goes to the
// leader that it names, at once. While servers say that there will be a leader (`not_leader`, `no_leader`,
// `outcome_unknown`), a call goes on for the settings' hand_over. Any other answer is final. The server that
// answered last is asked first the next time.
//
// Blocks its thread in the transport, and between tries in Timing::sleep_until; `stop` ends both.
// Threads: every member may be called by any number of threads.
class Caller {
 public:
  // `stop`: ends every call that has none of its own.
  Caller(const ClientSettings& settings, std::shared_ptr<Transport> transport,
         std::shared_ptr<const Timing> timing, std::stop_token stop = {});

  std::expected<Reply, CallFailure> call(const Call& call);

  // A stream of the server that leads. Ends, as if broken, when another one does. A refusal that may pass,
  // and what the wires say, have had their effect on which server is next; opening it again is up to the
  // caller.
  struct StreamEnd {
    std::expected<Answer, TransportError> answer;
    std::string server;  // whose it was
  };
  StreamEnd stream(Exchange exchange, const Transport::Bytes& bytes);

  // With jitter. Short with several servers, at first: one of them will lead soon, and that must not be
  // missed.
  Milliseconds pause_after(int failures) const {
    constexpr int kSoon = 50;
    return pause_after(failures, has_several() && failures < kSoon ? kHandOverPause : kLongestPause);
  }

  Transport& transport() { return *transport_; }
  const Timing& timing() const { return *timing_; }
  const ClientSettings& settings() const { return settings_; }
  int servers() const { return int(servers_.count()); }
  bool has_several() const { return servers_.count() > 1; }

 private:
  static constexpr Milliseconds kLongestPause{2'000}, kHandOverPause{400};

  struct Tries;
  // What a try without success came to, and what follows from it for the next one.
  CallFailure failed(const TransportError& error, const std::string& server, Steady::time_point sent_at,
                     Tries& tries);
  CallFailure refused(const Answer& answer, const std::string& server, Tries& tries);
  // True: a leader was named, and is asked next.
  bool follow(const std::string& server, const Refusal& refusal, ClientError& error);
  bool again(const Call& call, Tries& tries, CallFailure& failure);
  void give_up(const Tries& tries, CallFailure& failure) const;
  void report(const Call& call, const Reply& reply, const Tries& tries, int status) const;
  Milliseconds timeout_of(const Call& call, const Tries& tries) const;
  Milliseconds pause_after(int failures, Milliseconds longest) const;
  const std::stop_token& stop_of(const Call& call) const {
    return call.stop.stop_possible() ? call.stop : stop_;
  }

  const ClientSettings settings_;
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<const Timing> timing_;
  const std::stop_token stop_;
  ServerList servers_;
};

// Whether an answer other than 200 may be another one later, or at another server.
bool may_pass(const Answer& answer);

// Reads a reply with `read`, a function of answers.h. What it cannot read is no answer of Turnstile's.
template <class T>
Expected<T> read_reply(const std::expected<Reply, CallFailure>& reply,
                       std::optional<T> (*read)(std::string_view)) {
  if (!reply) return std::unexpected(reply.error().error);
  std::optional<T> value = read(reply->body);
  if (!value) return std::unexpected(not_turnstile(reply->server, 200));
  return std::move(*value);
}

}  // namespace turnstile::client
