// One call to "the server", whichever of the list that is: what is retried, where, and how soon.
#pragma once

#include <memory>
#include <string>

#include "base/sync.h"
#include "client/errors.h"
#include "client/timing.h"
#include "client/transport.h"
#include "turnstile/error.h"
#include "turnstile/settings.h"

namespace turnstile::client {

struct Call {
  bool post = true;
  std::string target{};
  std::string body{};
  Milliseconds timeout{0};                                  // of one try; 0: the settings' request_timeout
  int retries = -1;                                         // -1: the settings' max_retries
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

// Time-outs, broken connections, 5xx, 408 and 429 are tried again after a pause that doubles, up to 2 s, each
// time at the next server of the list; 503 `not_leader` goes to the leader that it names, at once. Any other
// answer is final. The server that answered last is asked first the next time.
//
// Blocks its thread in the transport, and between tries in Timing::sleep_until; `stop` ends both.
// Threads: every member may be called by any number of threads.
class Caller {
 public:
  // `stop`: ends every call that has none of its own.
  Caller(const ClientSettings& settings, std::shared_ptr<Transport> transport,
         std::shared_ptr<const Timing> timing, std::stop_token stop = {});

  std::expected<Reply, CallFailure> call(const Call& call);

  // For streams, which have a policy of their own: which server to ask, and that it did not answer.
  std::string server() const;
  void move_on_from(const std::string& server);
  Milliseconds pause_after(int failures) const;  // with jitter

  Transport& transport() { return *transport_; }
  const Timing& timing() const { return *timing_; }
  const ClientSettings& settings() const { return settings_; }

 private:
  struct Tries;
  // What a try without success came to, and what follows from it for the next one.
  CallFailure failed(const TransportError& error, const std::string& server, Tries& tries);
  CallFailure refused(const Answer& answer, const std::string& server, Tries& tries);
  bool again(const Call& call, Tries& tries, CallFailure& failure);
  void report(const Call& call, const Reply& reply, const Tries& tries, int status) const;
  Milliseconds timeout_of(const Call& call) const;
  const std::stop_token& stop_of(const Call& call) const {
    return call.stop.stop_possible() ? call.stop : stop_;
  }
  void follow(const std::string& from, const std::string& leader);

  const ClientSettings settings_;
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<const Timing> timing_;
  const std::stop_token stop_;
  mutable Mutex mutex_;
  size_t index_ TS_GUARDED_BY(mutex_) = 0;    // in settings_.servers
  std::string leader_ TS_GUARDED_BY(mutex_);  // named by a server of the list; empty: index_ counts
};

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
