// Event streams: what a subscriber gets first, what follows, and the comments in between (S27 to S30).
#include <charconv>

#include "api/event_json.h"
#include "server/loop_handler.h"

namespace turnstile {
namespace {

constexpr Duration kCommentEvery = std::chrono::seconds(10);
constexpr size_t kMostBacklog = 4 * 1024 * 1024;  // bytes of missed events that a resuming stream gets

// The header of that name, if it is one of our ids. Anything else cannot be known, which id 0 never is.
std::optional<uint64_t> parse_last_event_id(std::string_view text) {
  if (text.empty()) return std::nullopt;
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() ? id : 0;
}

}  // namespace

http::Outcome LoopHandler::subscribe(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  ApiResult<SubscribeCommand> command = query_.parse_subscribe(request.query);
  if (!command) return respond_error(responder, command.error());
  if (!app_.open_stream()) return respond_error(responder, make_error(ErrorCode::too_many_requests));

  command->bond = BondId(uint64_t(request.connection));
  const Filter filter = Filter::lane(command->lane);
  const auto subscriber = SubscriberId(uint64_t(request.connection));
  std::optional<uint64_t> last = parse_last_event_id(request.last_event_id);
  std::string first(kSseComment);
  Subscribed subscribed;
  do {
    const std::vector<Event> state = app_.engine().subscribe(*command, app_.now(), fresh(), [&] {
      subscribed = last ? app_.router().resume(loop_.index(), subscriber, filter, *last)
                        : app_.router().subscribe(loop_.index(), subscriber, filter);
    });
    // Who resumes knows the state from the events it missed; everybody else is told (S27).
    const bool reset = subscribed.outcome == Subscribed::Outcome::reset;
    if (reset) append_sse_reset(first, subscribed.position);
    if (reset || !last)
      for (const Event& event : state) append_sse_event(first, subscribed.position, event);
    last = next_resume(subscribed, first);
  } while (last);

  ConnectionState& connection = connections_[uint64_t(request.connection)];
  connection.stream_is_bond = !command->who.node.empty();
  if (connection.stream_is_bond) connection.stream = Errand(command->lane, command->who);
  return start_stream(request, responder, first);
}

http::Outcome LoopHandler::events(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<EventsRequest> wanted = query_.parse_events(request.query);
  if (!wanted) return respond_error(responder, wanted.error());
  if (!app_.open_stream()) return respond_error(responder, make_error(ErrorCode::too_many_requests));
  const Filter filter = Filter::everything(wanted->prefix, wanted->operation);
  const auto subscriber = SubscriberId(uint64_t(request.connection));
  std::optional<uint64_t> last = parse_last_event_id(request.last_event_id);
  std::string first(kSseComment);
  fresh();
  do {
    const Subscribed subscribed = last ? app_.router().resume(loop_.index(), subscriber, filter, *last)
                                       : app_.router().subscribe(loop_.index(), subscriber, filter);
    if (subscribed.outcome == Subscribed::Outcome::reset) append_sse_reset(first, subscribed.position);
    last = next_resume(subscribed, first);
  } while (last);
  return start_stream(request, responder, first);
}

// Adds the backlog to what is sent first. A result: there is more of it, from this id on. A backlog beyond
// the limit is as good as unknown (S28), and id 0 makes the next resume say so.
std::optional<uint64_t> LoopHandler::next_resume(const Subscribed& subscribed, std::string& first) {
  first += app_.router().format(subscribed.backlog);
  if (subscribed.outcome != Subscribed::Outcome::more) return std::nullopt;
  return first.size() > kMostBacklog ? 0 : subscribed.position;
}

http::Outcome LoopHandler::start_stream(const Request& request, Responder& responder,
                                        std::string_view first) {
  ConnectionState& connection = connections_[uint64_t(request.connection)];
  connection.streams = true;
  connection.next_comment = app_.now() + kCommentEvery;
  await(effects_.sequence);
  responder.start_stream("text/event-stream", first, effects_.sequence);
  app_.metrics().count_request(200);
  settle(request.connection);
  return Outcome::stream;
}

void LoopHandler::deliver_events(const std::vector<Delivery>& deliveries) {
  for (const Delivery& delivery : deliveries) {
    std::shared_ptr<const std::string> bytes = delivery.bytes;
    if (!bytes) {
      std::string reset;
      append_sse_reset(reset, delivery.id);
      bytes = std::make_shared<const std::string>(std::move(reset));
    }
    loop_.stream(http::ConnectionId(uint64_t(delivery.subscriber)), bytes);
  }
}

void LoopHandler::send_comments() {
  static const auto comment = std::make_shared<const std::string>(kSseComment);
  const Time now = app_.now();
  std::vector<uint64_t> due;  // sending may find a connection gone, which changes the table
  for (auto& [id, state] : connections_) {
    if (!state.streams || state.next_comment > now) continue;
    state.next_comment = now + kCommentEvery;
    due.push_back(id);
  }
  for (uint64_t id : due) loop_.stream(http::ConnectionId(id), comment);
}

}  // namespace turnstile
