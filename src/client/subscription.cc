#include <fmt/format.h>

#include <condition_variable>
#include <utility>

#include "base/sync.h"
#include "client/errors.h"
#include "client/requests.h"
#include "client/subscription_state.h"

namespace turnstile {

using client::Milliseconds;

namespace client {
std::string stream_target(const SubscribeRequest& request) {
  if (request.operation.empty() || request.resource.empty()) {
    return Target("/events").with("prefix", request.prefix).with("type", request.operation).take();
  }
  return Target("/lock/subscribe")
      .with("type", request.operation)
      .with("resource_id", request.resource)
      .with("node_id", request.node_id)
      .with("request_id", request.request_id)
      .take();
}
}  // namespace client

struct Subscription::State::Opening {
  void set(Expected<void> how) {
    const Locked lock(mutex);
    if (!outcome) outcome = std::move(how);
    changed.notify_all();
  }

  Mutex mutex;
  std::condition_variable_any changed;
  std::optional<Expected<void>> outcome TS_GUARDED_BY(mutex);  // of the first opening
};

struct Subscription::State::Stream {
  std::shared_ptr<client::Caller> caller;
  std::string target, last_id;
  OnEvent on_event;
  OnEnd on_end;
  std::function<void()> on_open;
  std::shared_ptr<Opening> opening;
  std::stop_token stop;
  bool heard = false;  // anything, on the present connection

  void run();
  // nullopt: open it again.
  std::optional<ClientError> read_once(client::SseParser& parser);
  bool take(const client::SseEvent& from);
  void opened();
};

void Subscription::State::Stream::run() {
  for (int failures = 0; !stop.stop_requested();) {
    client::SseParser parser;
    if (const std::optional<ClientError> error = read_once(parser)) {
      opening->set(std::unexpected(*error));
      try {
        if (on_end) on_end(*error);
      } catch (...) {  // the caller's own; it must not end the process
      }
      return;
    }
    // The pause also follows a stream that was good for a while: a server that restarts is asked by
    // everybody.
    failures = heard ? 1 : failures + 1;
    const auto until = caller->timing().now() + caller->pause_after(failures);
    if (!caller->timing().sleep_until(until, stop)) return;
  }
}

std::optional<ClientError> Subscription::State::Stream::read_once(client::SseParser& parser) {
  const Milliseconds silence = 2 * caller->settings().heartbeat;
  heard = false;
  const auto [answer, server] = caller->stream(
      {.target = target, .body = {}, .last_event_id = last_id, .silence = silence, .stop = stop},
      [&](std::string_view bytes) {
        if (!std::exchange(heard, true)) opened();
        return parser.feed(bytes, [this](const client::SseEvent& event) { return take(event); }) ==
               client::SseParser::Fed::more;
      });
  if (!answer) {
    ClientError error = client::error_of(answer.error(), server);
    if (error.code == ErrorCode::cancelled) return std::nullopt;
    const bool others = answer.error().fault == client::Fault::untrusted && caller->has_several();
    if (error.code != ErrorCode::unavailable && !others) return error;
    return std::nullopt;
  }
  if (answer->status == 200) return std::nullopt;
  const std::optional<client::Refusal> refusal = client::read_refusal(answer->body);
  if (client::may_pass(*answer)) return std::nullopt;
  return refusal ? client::error_of(answer->status, *refusal) : client::not_turnstile(server, answer->status);
}

// The server's first bytes: from here on it sends what happens.
void Subscription::State::Stream::opened() {
  opening->set({});
  try {
    if (on_open) on_open();
  } catch (...) {  // the caller's own; it must not pass through curl
  }
}

bool Subscription::State::Stream::take(const client::SseEvent& from) {
  if (stop.stop_requested()) return false;
  std::optional<Event> event = client::read_event(from.data);
  if (!event) return true;  // of a kind that this version does not know
  event->id = from.id;
  if (from.name == "reset") event->event = "reset";
  last_id = from.id;
  try {
    on_event(*event);
  } catch (...) {  // the caller's own; it must not pass through curl
  }
  return !stop.stop_requested();
}

Subscription::State::State(std::shared_ptr<client::Caller> caller, const SubscribeRequest& request,
                           OnEvent on_event, OnEnd on_end, const client::StartThread& start_thread)
    : opening_(std::make_shared<Opening>()) {
  auto stream = std::make_shared<Stream>(Stream{.caller = std::move(caller),
                                                .target = client::stream_target(request),
                                                .last_id = request.after,
                                                .on_event = std::move(on_event),
                                                .on_end = std::move(on_end),
                                                .on_open = request.on_open,
                                                .opening = opening_,
                                                .stop = stop_.get_token()});
  thread_ = start_thread([stream] { stream->run(); });
}

Expected<void> Subscription::State::await_open(std::chrono::milliseconds within) {
  const auto until = client::Steady::now() + within;
  const Locked lock(opening_->mutex);
  while (!opening_->outcome && client::Steady::now() < until)
    opening_->changed.wait_until(opening_->mutex, until);
  if (opening_->outcome) return *opening_->outcome;
  return client::fail(ErrorCode::unavailable,
                      fmt::format("no server has opened the stream within {} ms", within.count()));
}

void Subscription::State::end() {
  stop_.request_stop();
  if (!thread_.joinable()) return;
  thread_.get_id() == std::this_thread::get_id() ? thread_.detach() : thread_.join();
}

Subscription::Subscription(std::shared_ptr<State> state) : state_(std::move(state)) {}
Subscription::Subscription(Subscription&&) noexcept = default;
Subscription& Subscription::operator=(Subscription&&) noexcept = default;
Subscription::~Subscription() = default;

}  // namespace turnstile
