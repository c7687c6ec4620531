// Event streams: what a subscriber gets first, what follows, and the comments in between (S27 to S30).
//
// A stream is live (subscribed, events come as they are published) or behind: its reader had no room, or
// comes back after a while. Then the rest is read from the log, a part each time the reader has taken the
// last one, until it is live again. So a burst costs nobody his stream, and none takes more memory than its
// backlog.
#include "api/event_id.h"
#include "api/event_json.h"
#include "base/plant.h"
#include "server/loop_handler.h"

namespace turnstile {
namespace {

constexpr Duration kCommentEvery = std::chrono::seconds(10);

ApiError too_many_streams() {
  return make_error(ErrorCode::too_many_requests,
                    "as many event streams as may be (max-streams) are open: try again later");
}

// The state as events. Only the last has an id: who comes back with it has been told all of it.
void append_state(std::string& out, const std::vector<Event>& state, const Subscribed& subscribed) {
  const uint64_t id = subscribed.reset_at != 0 ? subscribed.reset_at + 1 : subscribed.position;
  for (const Event& event : state) append_sse_event(out, &event == &state.back() ? id : 0, event);
}

}  // namespace

http::Handled LoopHandler::subscribe(SubscribeCommand command, const Request& request, Responder& responder) {
  if (!common_.open_stream()) return respond_error(responder, too_many_streams());
  command.bond = BondId(uint64_t(request.connection));
  auto stream = std::make_unique<StreamState>();
  stream->filter = Filter::lane(command.lane);
  if (!command.who.node.empty()) stream->bond.emplace(command.lane, command.who);
  Subscribed subscribed;
  fresh();
  const SubscribeAnswer answer = service_->engine().subscribe(
      command, service_->now(), effects_, [&] { subscribed = join(request, stream->filter); });
  if (answer.refusal != Refusal::none) {
    common_.close_stream();
    return respond_error(responder,
                         make_error(error_of(answer.refusal), std::string(message_of(answer.refusal))), {},
                         effects_.sequence);
  }
  // Who resumes knows the state from the events it missed; everybody else is told (S27).
  const bool resumes = !request.last_event_id.empty() && subscribed.reset_at == 0;
  std::string told;
  if (!resumes) append_state(told, answer.state, subscribed);
  return start_stream(request, responder, std::move(stream), subscribed, told);
}

http::Handled LoopHandler::events(const EventsRequest& wanted, const Request& request, Responder& responder) {
  if (!common_.open_stream()) return respond_error(responder, too_many_streams());
  fresh();
  auto stream = std::make_unique<StreamState>();
  stream->filter = Filter::everything(wanted.prefix, wanted.operation, admission_.within());
  const Subscribed subscribed = join(request, stream->filter);
  effects_.sequence = service_->gate().latest();  // a reset has an id of this life, which must be marked
  return start_stream(request, responder, std::move(stream), subscribed, {});
}

Subscribed LoopHandler::join(const Request& request, const Filter& filter) {
  const auto subscriber = SubscriberId(uint64_t(request.connection));
  const std::optional<uint64_t> last = parse_last_event_id(request.last_event_id);
  if (!last) return service_->router().subscribe(loop_.index(), subscriber, filter);
  return service_->router().resume(loop_.index(), subscriber, filter, *last);
}

http::Handled LoopHandler::start_stream(const Request& request, Responder& responder,
                                        std::unique_ptr<StreamState> stream, const Subscribed& subscribed,
                                        std::string_view state) {
  body_.assign(kSseComment);
  if (subscribed.reset_at != 0) append_sse_reset(body_, subscribed.reset_at);
  body_ += state;
  body_ += service_->router().format(subscribed.backlog);
  settle(request.connection);
  http::Response begin;
  begin.content_type = "text/event-stream";
  begin.body = body_;
  begin.gate = effects_.sequence;
  begin.receipts = receipts_;
  responder.start_stream(begin);
  common_.metrics().count_request(200);

  ++streams_;
  stream->position = subscribed.position;
  stream->behind = !subscribed.live;
  stream->next_comment = service_->now() + kCommentEvery;
  if (stream->behind) loop_.tell_when_drained(request.connection);
  ConnectionState& connection = connections_[uint64_t(request.connection)];
  connection.stream = std::move(stream);
  connection.by = admission_.who_shared();
  return Handled::stream;
}

void LoopHandler::close_stream(const StreamState& stream, http::ConnectionId connection) {
  --streams_;
  common_.close_stream();
  if (service_ != nullptr && !stream.behind)
    service_->router().unsubscribe(SubscriberId(uint64_t(connection)));
}

void LoopHandler::send_events(const std::vector<Delivery>& deliveries) {
  if (service_->gate().is_over()) return;  // whoever leads next tells them (S47)
  for (const Delivery& delivery : deliveries) {
    const auto connection = http::ConnectionId(uint64_t(delivery.subscriber));
    const auto found = connections_.find(uint64_t(connection));
    if (found == connections_.end() || !found->second.stream) continue;
    StreamState& stream = *found->second.stream;
    // Deliveries under way when it fell behind are in the log, too.
    if (stream.behind || delivery.id <= stream.position) continue;
    const bool lost = delivery.bytes == nullptr;  // overwritten before it could be routed
    const http::Streamed streamed = lost ? http::Streamed::full : loop_.stream(connection, delivery.bytes);
    if (streamed == http::Streamed::full && planted(Plant::full_stream_forgets)) continue;
    if (streamed == http::Streamed::queued) stream.position = delivery.id;
    if (streamed != http::Streamed::full) continue;
    if (!lost) stream.position = delivery.id - 1;
    stream.behind = true;
    service_->router().unsubscribe(delivery.subscriber);
    loop_.tell_when_drained(connection);
  }
}

// The reader has taken all it was sent: the next part of what it missed.
void LoopHandler::on_drained(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end() || !found->second.stream || service_ == nullptr) return;
  if (service_->gate().is_over()) return;
  StreamState& stream = *found->second.stream;
  if (!stream.behind) return;
  const auto subscriber = SubscriberId(uint64_t(connection));
  if (planted(Plant::catch_up_skips)) ++stream.position;
  const Subscribed subscribed =
      service_->router().resume(loop_.index(), subscriber, stream.filter, stream.position);
  if (subscribed.reset_at != 0 && stream.filter.kind == Filter::Kind::lane) {
    if (subscribed.live) service_->router().unsubscribe(subscriber);
    return end_stream(connection);
  }
  stream.position = subscribed.position;
  stream.behind = !subscribed.live;
  std::string part;
  if (subscribed.reset_at != 0) append_sse_reset(part, subscribed.reset_at);
  part += service_->router().format(subscribed.backlog);
  if (!part.empty()) loop_.stream(connection, std::make_shared<const std::string>(std::move(part)));
  if (stream.behind) loop_.tell_when_drained(connection);
}

// A lane's stream that has fallen out of the log ends: behind its reset comes the state, and that is told
// only to who subscribes, behind the gate (S28, S31).
void LoopHandler::end_stream(http::ConnectionId connection) {
  loop_.post([this, connection] {
    on_closed(connection);
    loop_.close(connection);
  });
}

void LoopHandler::tick() { send_comments(); }

void LoopHandler::send_comments() {
  if (service_->gate().is_over()) return;  // whoever lives by a stream would believe that it still does
  static const auto comment = std::make_shared<const std::string>(kSseComment);
  const Time now = service_->now();
  std::vector<uint64_t> due;  // sending may find a connection gone, which changes the table
  for (auto& [id, state] : connections_) {
    if (!state.stream || state.stream->next_comment > now) continue;
    state.stream->next_comment = now + kCommentEvery;
    due.push_back(id);
  }
  for (uint64_t id : due) loop_.stream(http::ConnectionId(id), comment);
}

}  // namespace turnstile
