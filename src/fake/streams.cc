// Event streams: what a subscriber gets first, what follows, and the comments in between (S27, S28).
#include <stop_token>

#include "api/event_id.h"
#include "api/event_json.h"
#include "api/query.h"
#include "fake/memory_service.h"

namespace turnstile::fake {
namespace {

constexpr std::chrono::milliseconds kCommentEvery{10'000};

}  // namespace

struct MemoryService::Stream {
  explicit Stream(const client::Exchange& asked)
      : exchange(asked),
        deadline(asked.timeout.count() > 0 ? Steady::now() + asked.timeout : Steady::time_point::max()),
        comment_every(asked.silence.count() > 0 ? std::min(kCommentEvery, asked.silence / 4) : kCommentEvery),
        next_comment(Steady::now() + comment_every) {}

  // What is in the log after `position`, to `out`.
  void read(const EventLog& log, std::string& out) {
    EventLog::Reading reading;
    do {
      EventBatch batch;
      reading = log.read(position, &filter, {}, batch);
      if (reading.lost != 0) append_sse_reset(out, reading.lost);
      for (size_t i = 0; i < batch.size(); ++i) append_sse_event(out, batch.id(i), batch.event(i));
      position = reading.reached;
    } while (!reading.complete);
  }

  const client::Exchange& exchange;
  const Steady::time_point deadline;
  const std::chrono::milliseconds comment_every;
  Steady::time_point next_comment;
  uint64_t id = 0;
  Filter filter;
  uint64_t position = 0;  // everything up to this event has been told, or is not wanted
  std::string first;      // told at once
};

MemoryService::Outcome MemoryService::stream(const client::Exchange& exchange,
                                             const client::Transport::Bytes& bytes) {
  const std::stop_callback on_stop(exchange.stop, [this] { wake(); });
  const size_t end_of_path = exchange.target.find('?');
  const std::optional<Path> path = find_path(exchange.target.substr(0, end_of_path));
  Stream stream(exchange);
  {
    const Locked lock(mutex_);
    if (!reachable_) return unreachable();
    expire();
    const std::string_view query =
        end_of_path == exchange.target.npos ? std::string_view() : exchange.target.substr(end_of_path + 1);
    if (const auto error = open_stream(stream, path.value_or(Path::root), query)) return error_answer(*error);
  }
  bool more = bytes(stream.first);
  while (more) {
    const auto text = next_bytes(stream);
    if (!text) {
      close_stream(stream);
      return std::unexpected(text.error());
    }
    more = bytes(*text);
  }
  close_stream(stream);
  return client::Answer{.status = 200};
}

std::optional<ApiError> MemoryService::open_stream(Stream& stream, Path path, std::string_view query) {
  QueryParser parser;
  Effects effects;
  Errand bond;
  std::vector<Event> state;
  stream.id = ++last_id_;
  if (path == Path::events) {
    const ApiResult<EventsRequest> wanted = parser.parse_events(query);
    if (!wanted) return wanted.error();
    stream.filter = Filter::everything(wanted->prefix, wanted->operation);
  } else if (path == Path::lock_subscribe || path == Path::subscribe) {
    ApiResult<SubscribeCommand> command = parser.parse_subscribe(query);
    if (!command) return command.error();
    command->bond = BondId(stream.id);
    stream.filter = Filter::lane(command->lane);
    bond = Errand(command->lane, command->who);
    SubscribeAnswer answer = engine_.subscribe(*command, now(), effects, [] {});
    if (answer.refusal != Refusal::none)
      return make_error(error_of(answer.refusal), std::string(message_of(answer.refusal)));
    state = std::move(answer.state);
  } else {
    return make_error(ErrorCode::unknown_path);
  }
  streams_.emplace(stream.id, bond);

  // Who resumes knows the state from the events it missed; everybody else is told (S27).
  const std::optional<uint64_t> last = parse_last_event_id(stream.exchange.last_event_id);
  const uint64_t here = events_.last_id();
  const bool known = last && *last >= kFirstEvent - 1 && *last <= here;
  stream.first = kSseComment;
  stream.position = known ? *last : here;
  if (last && !known) append_sse_reset(stream.first, here);
  if (!known) {
    for (const Event& event : state) append_sse_event(stream.first, here, event);
  }
  distribute(effects);
  stream.read(events_, stream.first);
  return std::nullopt;
}

std::expected<std::string, client::TransportError> MemoryService::next_bytes(Stream& stream) {
  const Locked lock(mutex_);
  for (;; wait_for_change(kNever, std::min(stream.deadline, stream.next_comment))) {
    if (!streams_.contains(stream.id)) return broken();
    if (stream.exchange.stop.stop_requested()) return stopped();
    std::string text;
    stream.read(events_, text);
    const Steady::time_point at = Steady::now();
    if (text.empty() && at >= stream.next_comment) text = kSseComment;
    if (!text.empty()) {
      stream.next_comment = at + stream.comment_every;
      return text;
    }
    if (at >= stream.deadline) return timed_out();
  }
}

void MemoryService::close_stream(Stream& stream) {
  const Locked lock(mutex_);
  const auto entry = streams_.extract(stream.id);
  if (entry) close_bond(stream.id, entry.mapped());
}

}  // namespace turnstile::fake
