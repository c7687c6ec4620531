// What the parts of a client share.
#pragma once

#include <memory>
#include <string>

#include "client/caller.h"
#include "client/hold_state.h"
#include "client/keeper.h"
#include "client/requests.h"
#include "client/threads.h"
#include "client/timing.h"
#include "client/transport.h"
#include "turnstile/lock_client.h"

namespace turnstile {

namespace client {
// For tests and the program `turnstile`: time that does not pass by itself, renewals only when asked for, and
// no threads to be had.
struct CoreOptions {
  std::shared_ptr<const Timing> timing{};  // empty: the real one
  bool keeper_thread = true;
  StartThread start_thread = start_real_thread;
  std::stop_token stop{};  // of every call that has none of its own
};
}  // namespace client

// Any Transport will do: libcurl's, or one to a server in this process.
// Threads: every member may be called by any number of threads.
class LockClient::Core {
 public:
  Core(ClientSettings settings, std::shared_ptr<client::Transport> transport,
       client::CoreOptions options = {});

  const ClientSettings& settings() const { return settings_; }
  client::Caller& caller() { return *caller_; }
  client::Keeper& keeper() { return *keeper_; }
  const client::Timing& timing() const { return caller_->timing(); }

  // With the client's node and a new request id where the caller gave none.
  client::Requester requester_of(const LockRequest& request) const;
  client::Requester requester(const std::string& operation, const std::string& resource,
                              const std::string& request_id) const;
  // Of an answer `acquired` to the request that was sent at `sent_at`. Error `exhausted`: what it needs to be
  // kept cannot be had, and it was released.
  Expected<Hold> make_hold(const LockRequest& request, const client::Requester& who,
                           const client::LockAnswer& answer, Clock::time_point sent_at);
  Expected<Subscription> subscribe(const SubscribeRequest& request,
                                   std::function<void(const Event&)> on_event,
                                   std::function<void(const ClientError&)> on_end);
  // Posts `body`, and reads the answer with `read`.
  template <class T>
  Expected<T> post(std::string target, std::string body, std::optional<T> (*read)(std::string_view)) {
    return client::read_reply(caller_->call({.target = std::move(target), .body = std::move(body)}), read);
  }
  // What would end somebody else's work, done twice: sent again only while it has not been done for sure.
  template <class T>
  Expected<T> post_once(std::string target, std::string body, std::optional<T> (*read)(std::string_view)) {
    auto reply = caller_->call({.target = std::move(target), .body = std::move(body), .once = true});
    if (!reply && reply.error().maybe_done)
      reply.error().error.message += ". Whether it was done is not known: look at the status first";
    return client::read_reply(reply, read);
  }
  template <class T>
  Expected<T> get(std::string target, std::optional<T> (*read)(std::string_view)) {
    return client::read_reply(caller_->call({.post = false, .target = std::move(target), .body = {}}), read);
  }

 private:
  const ClientSettings settings_;
  const std::shared_ptr<client::Caller> caller_;
  const client::StartThread start_thread_;
  const std::shared_ptr<client::Keeper> keeper_;
};

}  // namespace turnstile
