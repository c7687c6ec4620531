// The calls that are answered: parse, ask the engine, write, as turnstiled's handlers do.
#include <stop_token>
#include <variant>

#include "api/answer_writer.h"
#include "api/query.h"
#include "api/request_parser.h"
#include "fake/memory_service.h"

namespace turnstile::fake {

using client::Answer;

// With a parser of its own, because commands are views into it and a call may wait.
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
  RequestParser parser;
  QueryParser query_parser;
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

template <class Command, class Ask>
Answer MemoryService::decide(Call& call, const ApiResult<Command>& command, Ask ask) {
  if (!command) return error_answer(command.error());
  const unsigned status = ask(engine_, now(), *command);
  distribute(call.effects);
  return {.status = int(status), .body = std::move(call.out)};
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
  return answer(call, *path);
}

// A client that waits for its turn stays through a server's absence. This server will not come back, so
// whoever waits is told to stop.
bool MemoryService::waits(Call& call) {
  if (find_path(call.path()) != Path::lock) return false;
  const ApiResult<LockRequest> parsed = call.parser.parse_lock(call.body());
  if (!parsed) return false;
  const StatusAnswer own = engine_.status({parsed->command.lane, parsed->command.who}, now(), call.effects);
  return own.position > 0 || own.acquired || own.completed;  // or has waited, and not heard how it ended
}

MemoryService::Outcome MemoryService::answer(Call& call, Path path) {
  RequestParser& parser = call.parser;
  switch (path) {
    case Path::lock:
      return lock(call);
    case Path::unlock:
      return decide(call, parser.parse_unlock(call.body()),
                    [&](Engine& engine, Time at, const UnlockCommand& command) {
                      return append_unlock_answer(call.out, engine.unlock(command, at, call.effects));
                    });
    case Path::renew:
      return decide(call, parser.parse_renew(call.body()),
                    [&](Engine& engine, Time at, const RenewCommand& command) {
                      return append_renew_answer(call.out, engine.renew(command, at, call.effects));
                    });
    case Path::cancel:
      return decide(call, parser.parse_cancel(call.body()),
                    [&](Engine& engine, Time at, const CancelCommand& command) {
                      return append_cancel_answer(call.out, engine.cancel(command, at, call.effects));
                    });
    case Path::admin_break:
      return decide(call, parser.parse_break(call.body()),
                    [&](Engine& engine, Time at, const BreakCommand& command) {
                      return append_break_answer(call.out, engine.break_hold(command, at, call.effects));
                    });
    case Path::refs:
      return decide(call, call.query_parser.parse_references(call.query),
                    [&](Engine& engine, Time, ResourceId resource) {
                      return append_references_answer(call.out, engine.references(resource, call.effects),
                                                      resource);
                    });
    case Path::refs_add:
    case Path::refs_release:
      return change_reference(call, path == Path::refs_add);
    case Path::refs_release_node:
      return decide(call, parser.parse_release_node(call.body()), [&](Engine& engine, Time at, NodeId node) {
        return append_release_node_answer(call.out, engine.release_node(node, at, call.effects), node);
      });
    case Path::batch:
      return batch(call);
    case Path::lock_status:
      return status(call);
    case Path::locks:
      return list(call);
    case Path::healthz:
    case Path::readyz:
      return Answer{.status = 200, .body = R"({"status":"ok","ready":true})"};
    case Path::version:
      return Answer{.status = 200, .body = R"({"version":")" TURNSTILE_VERSION R"(","fake":true})"};
    default:
      return error_answer(make_error(ErrorCode::unknown_path, "the fake server does not have this path"));
  }
}

MemoryService::Outcome MemoryService::lock(Call& call) {
  ApiResult<LockRequest> parsed = call.parser.parse_lock(call.body());
  if (!parsed) return error_answer(parsed.error());
  LockCommand& command = parsed->command;
  const uint64_t poll = ++last_id_;
  if (parsed->wait.count() > 0) command.poll = PollId(poll);
  command.bond = BondId(call.connection);
  const LockAnswer answer = engine_.lock(command, now(), call.effects);
  if (answer.bonded) note_bond(call.connection, command.lane, command.who);
  const bool waits = answer.state == LockState::queued && command.poll != PollId::none;  // S24
  if (waits) polls_[poll].errand = Errand(command.lane, command.who);
  const unsigned status = append_lock_answer(call.out, answer, command.lane);
  distribute(call.effects);
  if (waits) return await_turn(call, poll, later(now(), parsed->wait));
  return Answer{.status = int(status), .body = std::move(call.out)};
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

Answer MemoryService::batch(Call& call) {
  const ApiResult<size_t> count = call.parser.parse_batch(call.body());
  if (!count) return error_answer(count.error());
  BatchFrame frame(call.out);
  for (size_t i = 0; i < *count; ++i) {
    const BatchItem item = call.parser.next_in_batch();
    call.effects.clear();
    frame.next_answer();
    if (const auto* lock = std::get_if<LockCommand>(&item)) {
      append_lock_answer(call.out, engine_.lock(*lock, now(), call.effects), lock->lane, Place::in_batch);
    } else if (const auto* unlock = std::get_if<UnlockCommand>(&item)) {
      append_unlock_answer(call.out, engine_.unlock(*unlock, now(), call.effects), Place::in_batch);
    } else if (const auto* renew = std::get_if<RenewCommand>(&item)) {
      append_renew_answer(call.out, engine_.renew(*renew, now(), call.effects), Place::in_batch);
    } else if (const auto* cancel = std::get_if<CancelCommand>(&item)) {
      append_cancel_answer(call.out, engine_.cancel(*cancel, now(), call.effects), Place::in_batch);
    } else {
      append_error_json(call.out, std::get<ApiError>(item), Place::in_batch);
    }
    distribute(call.effects);
  }
  frame.finish();
  return {.status = 200, .body = std::move(call.out)};
}

Answer MemoryService::status(Call& call) {
  const ApiResult<StatusCommand> command =
      call.exchange.post ? call.parser.parse_status(call.body()) : call.query_parser.parse_status(call.query);
  return decide(call, command, [&](Engine& engine, Time at, const StatusCommand& valid) {
    return append_status_answer(call.out, engine.status(valid, at, call.effects));
  });
}

Answer MemoryService::list(Call& call) {
  return decide(call, call.query_parser.parse_list(call.query),
                [&](Engine& engine, Time at, const ListCommand& command) {
                  const ListAnswer answer = engine.list(command, at, call.effects);
                  std::optional<LaneName> next;
                  if (answer.more) next = answer.page.back().lane;
                  return append_list_answer(call.out, answer.page, next);
                });
}

Answer MemoryService::change_reference(Call& call, bool add) {
  return decide(call, call.parser.parse_reference(call.body()),
                [&](Engine& engine, Time at, const ReferenceCommand& command) {
                  const ReferencesAnswer answer = add ? engine.add_reference(command, at, call.effects)
                                                      : engine.release_reference(command, at, call.effects);
                  return append_reference_change(call.out, answer, command.resource);
                });
}

}  // namespace turnstile::fake
