#include "client/core.h"

#include <unistd.h>

#include <array>
#include <system_error>

#include "client/random_id.h"
#include "client/subscription_state.h"

namespace turnstile {
namespace {

ClientSettings with_node_id(ClientSettings settings) {
  if (!settings.node_id.empty()) return settings;
  std::array<char, 256> name{};
  settings.node_id = gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  return settings;
}

std::unexpected<ClientError> no_thread() {
  return client::fail(ErrorCode::exhausted,
                      "this process can have no more threads: raise its limit (ulimit -u, pids.max)");
}

}  // namespace

LockClient::Core::Core(ClientSettings settings, std::shared_ptr<client::Transport> transport,
                       client::CoreOptions options)
    : settings_(with_node_id(std::move(settings))),
      caller_(std::make_shared<client::Caller>(
          settings_, std::move(transport),
          options.timing ? std::move(options.timing) : std::make_shared<const client::Timing>(),
          std::move(options.stop))),
      start_thread_(std::move(options.start_thread)),
      keeper_(std::make_shared<client::Keeper>(caller_, options.keeper_thread, start_thread_)) {}

client::Requester LockClient::Core::requester(const std::string& operation, const std::string& resource,
                                              const std::string& request_id) const {
  return {
      .operation = operation, .resource = resource, .node_id = settings_.node_id, .request_id = request_id};
}

client::Requester LockClient::Core::requester_of(const LockRequest& request) const {
  return {.operation = request.operation,
          .resource = request.resource,
          .node_id = request.node_id.empty() ? settings_.node_id : request.node_id,
          .request_id = request.request_id.empty() ? client::new_request_id() : request.request_id};
}

Expected<Hold> LockClient::Core::make_hold(const LockRequest& request, const client::Requester& who,
                                           const client::LockAnswer& answer, Clock::time_point sent_at) {
  auto state = std::make_shared<Hold::State>(Hold::State::Granted{.who = who,
                                                                  .token = answer.token,
                                                                  .attempt = answer.attempt,
                                                                  .previous_error = answer.previous_error,
                                                                  .lease = request.lease,
                                                                  .sent_at = sent_at},
                                             caller_, keeper_);
  bool kept = request.lease.count() == 0 || keeper_->add(state);
  if (kept && request.monitor) {
    // The connection that asked is a bond, too, but it lies in a pool and may be closed there.
    Expected<Subscription> bond = subscribe({.operation = who.operation,
                                             .resource = who.resource,
                                             .prefix = {},
                                             .after = {},
                                             .node_id = who.node_id,
                                             .request_id = who.request_id},
                                            [](const Event&) {}, {});
    kept = bond.has_value();
    if (kept) state->keep_bond(std::move(*bond));
  }
  if (!kept) {
    (void)state->release(WorkResult::failed("its client could not start a thread"), client::kShortPatience);
    return no_thread();
  }
  return Hold(std::move(state));
}

Expected<Subscription> LockClient::Core::subscribe(const SubscribeRequest& request,
                                                   std::function<void(const Event&)> on_event,
                                                   std::function<void(const ClientError&)> on_end) {
  try {
    auto state = std::make_shared<Subscription::State>(caller_, request, std::move(on_event),
                                                       std::move(on_end), start_thread_);
    if (request.open_within.count() > 0) {
      if (const Expected<void> open = state->await_open(request.open_within); !open) {
        return std::unexpected(open.error());
      }
    }
    return Subscription(std::move(state));
  } catch (const std::system_error&) {
    return no_thread();
  }
}

}  // namespace turnstile
