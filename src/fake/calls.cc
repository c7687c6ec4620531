// The calls that are answered: the same commands as turnstiled's, carried out by the same code.
#include <stop_token>
#include <variant>

#include "api/answer_writer.h"
#include "api/command_reader.h"
#include "fake/memory_service.h"
#include "service/carry_out.h"

namespace turnstile::fake {

using client::Answer;

// With a reader of its own, because commands are views into it and a call may wait.
struct MemoryService::Call {
  Call(uint64_t from, const client::Exchange& asked)
      : connection(from), exchange(asked), padded(asked.body), query(asked.target) {
    padded.append(RequestParser::kBodyPadding, '\0');
    query.remove_prefix(std::min(query.size(), query.find('?')));
    if (!query.empty()) query.remove_prefix(1);
  }

  std::string_view path() const { return exchange.target.substr(0, exchange.target.find('?')); }
  std::string_view body() const { return std::string_view(padded).substr(0, exchange.body.size()); }

  const uint64_t connection;
  const client::Exchange& exchange;
  std::string padded;
  std::string_view query;
  CommandReader reader;
  Effects effects;
  std::string out;
};

Answer error_answer(const ApiError& error) {
  Answer answer{.status = int(error.status)};
  append_error_json(answer.body, error);
  return answer;
}

static Answer sent_away() {
  LockAnswer cancelled;
  cancelled.state = LockState::cancelled;
  Answer answer;
  answer.status = int(append_lock_answer(answer.body, cancelled, LaneName()));
  return answer;
}

MemoryService::Outcome MemoryService::exchange(uint64_t connection, const client::Exchange& exchange) {
  const std::stop_callback on_stop(exchange.stop, [this] { wake(); });  // outside of the mutex, both ends
  Call call(connection, exchange);
  const Locked lock(mutex_);
  if (ended_ && waits(call)) return sent_away();
  if (!reachable_) return unreachable();
  expire();
  const std::optional<Path> path = find_path(call.path());
  if (!path) return error_answer(make_error(ErrorCode::unknown_path));
  if (!allows(*path, exchange.post ? kPost : kGet)) {
    return error_answer(make_error(ErrorCode::method_not_allowed));
  }
  if (is_command(*path)) return carry_out(call, *path);
  switch (*path) {
    case Path::healthz:
    case Path::readyz:
      return Answer{.status = 200, .body = R"({"status":"ok","ready":true})"};
    case Path::version:
      return Answer{.status = 200,
                    .body = R"({"version":")" TURNSTILE_VERSION R"(","life":"fake","fake":true})"};
    default:
      return error_answer(make_error(ErrorCode::unknown_path, "the fake server does not have this path"));
  }
}

// A client that waits for its turn stays through a server's absence. This server will not come back, so
// whoever waits is told to stop.
bool MemoryService::waits(Call& call) {
  if (find_path(call.path()) != Path::lock) return false;
  const ApiResult<Command> command = call.reader.read(Path::lock, true, {}, call.body());
  if (!command) return false;
  const LockCommand& lock = std::get<LockRequest>(*command).command;
  const StatusAnswer own = engine_.status({lock.lane, lock.who}, now(), call.effects);
  return own.position > 0 || own.acquired || own.completed;  // or has waited, and not heard how it ended
}

MemoryService::Outcome MemoryService::carry_out(Call& call, Path path) {
  ApiResult<Command> command = call.reader.read(path, call.exchange.post, call.query, call.body());
  if (!command) return error_answer(command.error());
  if (auto* lock = std::get_if<LockRequest>(&*command)) return this->lock(call, *lock, *command);
  if (const auto* batch = std::get_if<BatchCommand>(&*command)) return this->batch(call, batch->count);
  if (const auto* list = std::get_if<ListCommand>(&*command)) return this->list(call, *list);
  if (const auto* node = std::get_if<ReleaseNodeCommand>(&*command)) return release_node(call, *node);
  const bool streams = std::get_if<SubscribeCommand>(&*command) || std::get_if<EventsRequest>(&*command);
  if (streams) return error_answer(make_error(ErrorCode::method_not_allowed));
  return one_step(call, *command);
}

Answer MemoryService::one_step(Call& call, const Command& command) {
  const CarriedOut done = turnstile::carry_out(engine_, command, now(), call.effects, call.out);
  distribute(call.effects);
  return {.status = int(done.status), .body = std::move(call.out)};
}

MemoryService::Outcome MemoryService::lock(Call& call, LockRequest& request, const Command& command) {
  const uint64_t poll = ++last_id_;
  if (request.wait.count() > 0) request.command.poll = PollId(poll);
  request.command.bond = BondId(call.connection);
  const CarriedOut done = turnstile::carry_out(engine_, command, now(), call.effects, call.out);
  if (done.bonded) note_bond(call.connection, request.command.lane, request.command.who);
  if (done.waits) polls_[poll].errand = Errand(request.command.lane, request.command.who);
  distribute(call.effects);
  if (done.waits) return await_turn(call, poll, later(now(), request.wait));
  return Answer{.status = int(done.status), .body = std::move(call.out)};
}

MemoryService::Outcome MemoryService::await_turn(Call& call, uint64_t id, Time until) {
  const auto timeout = call.exchange.timeout;
  const Steady::time_point deadline =
      timeout.count() > 0 ? Steady::now() + timeout : Steady::time_point::max();
  for (;; wait_for_change(until, deadline)) {
    const auto found = polls_.find(id);
    if (found == polls_.end()) return broken();
    OpenPoll& poll = found->second;
    const bool stop = call.exchange.stop.stop_requested();
    if (!poll.answer && !stop && Steady::now() < deadline && now() < until) continue;

    const OpenPoll ended = std::move(poll);
    polls_.erase(found);
    if (ended.answer) return *ended.answer;
    if (stop || now() < until) {
      break_poll(id, ended.errand);
      return stop ? stopped() : timed_out();
    }
    Effects effects;
    const std::optional<LockAnswer> answer =
        engine_.end_poll(ended.errand.lane(), ended.errand.who(), PollId(id), now(), effects);
    if (!answer) return broken();  // the engine does not know it: as if it had never come
    Answer queued;
    queued.status = int(append_lock_answer(queued.body, *answer, ended.errand.lane()));
    distribute(effects);
    return queued;
  }
}

Answer MemoryService::batch(Call& call, size_t count) {
  BatchFrame frame(call.out);
  for (size_t i = 0; i < count; ++i) {
    const ApiResult<Command> item = call.reader.next_in_batch();
    call.effects.clear();
    frame.next_answer();
    if (item)
      turnstile::carry_out(engine_, *item, now(), call.effects, call.out, AnswerForm::in_batch);
    else
      append_error_json(call.out, item.error(), AnswerForm::in_batch);
    distribute(call.effects);
  }
  frame.finish();
  return {.status = 200, .body = std::move(call.out)};
}

Answer MemoryService::list(Call& call, const ListCommand& command) {
  ListWalk walk(command);
  engine_.list_some(walk, SIZE_MAX, now());
  const ListAnswer& answer = walk.answer();
  std::optional<LaneName> next;
  if (answer.more) next = answer.next;
  const int status = int(append_list_answer(call.out, answer.page, next, answer.matched));
  return {.status = status, .body = std::move(call.out)};
}

Answer MemoryService::release_node(Call& call, const ReleaseNodeCommand& command) {
  ReleaseNodeWalk walk(command.node);
  engine_.release_node_some(walk, SIZE_MAX, now(), call.effects, [](Effects&) {});
  const int status = int(append_release_node_answer(call.out, walk.answer(), command.node));
  return {.status = status, .body = std::move(call.out)};
}

}  // namespace turnstile::fake
