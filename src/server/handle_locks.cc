// The calls about locks and references: parse, ask the engine, write.
#include <variant>

#include "api/answer_writer.h"
#include "server/loop_handler.h"

namespace turnstile {

http::Outcome LoopHandler::lock(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  ApiResult<LockRequest> parsed = parser_.parse_lock(request.body);
  if (!parsed) return respond_error(responder, parsed.error());
  LockCommand& command = parsed->command;
  if (parsed->wait.count() > 0) command.poll = PollId(uint64_t(request.connection));
  command.bond = BondId(uint64_t(request.connection));
  const LockAnswer answer = app_.engine().lock(command, app_.now(), fresh());
  if (answer.bonded) note_bond(request.connection, command.lane, command.who);
  if (answer.state == LockState::queued && command.poll != PollId::none) {  // S24
    ConnectionState& state = connections_[uint64_t(request.connection)];
    state.polls = true;
    state.poll = Errand(command.lane, command.who);
    loop_.set_timer(request.connection, parsed->wait);
    settle(request.connection);
    return Outcome::waiting;
  }
  const unsigned status = append_lock_answer(body_, answer, command.lane);
  log_decision("lock", command.lane, command.who, status);
  return respond(request, responder, status);
}

http::Outcome LoopHandler::unlock(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<UnlockCommand> command = parser_.parse_unlock(request.body);
  if (!command) return respond_error(responder, command.error());
  const UnlockAnswer answer = app_.engine().unlock(*command, app_.now(), fresh());
  if (answer.refusal == Refusal::none) forget_bond(request.connection, command->lane, command->who);
  const unsigned status = append_unlock_answer(body_, answer);
  log_decision("unlock", command->lane, command->who, status);
  return respond(request, responder, status);
}

http::Outcome LoopHandler::renew(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<RenewCommand> command = parser_.parse_renew(request.body);
  if (!command) return respond_error(responder, command.error());
  const unsigned status = append_renew_answer(body_, app_.engine().renew(*command, app_.now(), fresh()));
  log_decision("renew", command->lane, command->who, status);
  return respond(request, responder, status);
}

http::Outcome LoopHandler::cancel(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<CancelCommand> command = parser_.parse_cancel(request.body);
  if (!command) return respond_error(responder, command.error());
  const CancelAnswer answer = app_.engine().cancel(*command, app_.now(), fresh());
  const unsigned status = append_cancel_answer(body_, answer);
  log_decision("cancel", command->lane, command->who, status);
  return respond(request, responder, status);
}

http::Outcome LoopHandler::batch(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<size_t> count = parser_.parse_batch(request.body);
  if (!count) return respond_error(responder, count.error());
  body_.clear();
  BatchFrame frame(body_);
  uint64_t sequence = 0;
  for (size_t i = 0; i < *count; ++i) {
    const BatchItem item = parser_.next_in_batch();
    effects_.clear();
    frame.next_answer();
    answer_batch_item(item);
    sequence = std::max(sequence, effects_.sequence);
    if (i + 1 < *count) settle(request.connection);
  }
  frame.finish();
  if (*count == 0) effects_.clear();
  effects_.sequence = sequence;  // the whole answer leaves when the last of its steps is safe
  return respond(request, responder, 200);
}

void LoopHandler::answer_batch_item(const BatchItem& item) {
  const Time now = app_.now();
  Engine& engine = app_.engine();
  if (const auto* lock = std::get_if<LockCommand>(&item))
    append_lock_answer(body_, engine.lock(*lock, now, effects_), lock->lane, Place::in_batch);
  else if (const auto* unlock = std::get_if<UnlockCommand>(&item))
    append_unlock_answer(body_, engine.unlock(*unlock, now, effects_), Place::in_batch);
  else if (const auto* renew = std::get_if<RenewCommand>(&item))
    append_renew_answer(body_, engine.renew(*renew, now, effects_), Place::in_batch);
  else if (const auto* cancel = std::get_if<CancelCommand>(&item))
    append_cancel_answer(body_, engine.cancel(*cancel, now, effects_), Place::in_batch);
  else
    append_error_json(body_, std::get<ApiError>(item), Place::in_batch);
}

http::Outcome LoopHandler::status(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;  // asking claims a grant
  const bool post = request.method == http::Method::post;
  const ApiResult<StatusCommand> command =
      post ? parser_.parse_status(request.body) : query_.parse_status(request.query);
  if (!command) return respond_error(responder, command.error());
  const StatusAnswer answer = app_.engine().status(*command, app_.now(), fresh());
  return respond(request, responder, append_status_answer(body_, answer));
}

http::Outcome LoopHandler::list(const Request& request, Responder& responder) {
  const ApiResult<ListCommand> command = query_.parse_list(request.query);
  if (!command) return respond_error(responder, command.error());
  const ListAnswer answer = app_.engine().list(*command, app_.now(), fresh());
  std::optional<LaneName> next;
  if (answer.more) next = answer.page.back().lane;
  return respond(request, responder, append_list_answer(body_, answer.page, next));
}

http::Outcome LoopHandler::break_hold(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<BreakCommand> command = parser_.parse_break(request.body);
  if (!command) return respond_error(responder, command.error());
  const BreakAnswer answer = app_.engine().break_hold(*command, app_.now(), fresh());
  const unsigned status = append_break_answer(body_, answer);
  log_info("break", {{"type", command->lane.operation.text},
                     {"resource_id", command->lane.resource.text},
                     {"reason", command->reason},
                     {"node_id", answer.node.text},
                     {"status", status}});
  return respond(request, responder, status);
}

http::Outcome LoopHandler::references(const Request& request, Responder& responder) {
  const ApiResult<ResourceId> resource = query_.parse_references(request.query);
  if (!resource) return respond_error(responder, resource.error());
  const ReferencesAnswer answer = app_.engine().references(*resource, fresh());
  return respond(request, responder, append_references_answer(body_, answer, *resource));
}

http::Outcome LoopHandler::change_reference(const Request& request, Responder& responder, bool add) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<ReferenceCommand> command = parser_.parse_reference(request.body);
  if (!command) return respond_error(responder, command.error());
  Engine& engine = app_.engine();
  const ReferencesAnswer answer = add ? engine.add_reference(*command, app_.now(), fresh())
                                      : engine.release_reference(*command, app_.now(), fresh());
  return respond(request, responder, append_reference_change(body_, answer, command->resource));
}

http::Outcome LoopHandler::release_node(const Request& request, Responder& responder) {
  if (!accepts_work(responder)) return Outcome::answered;
  const ApiResult<NodeId> node = parser_.parse_release_node(request.body);
  if (!node) return respond_error(responder, node.error());
  const ReferencesAnswer answer = app_.engine().release_node(*node, app_.now(), fresh());
  return respond(request, responder, append_release_node_answer(body_, answer, *node));
}

void LoopHandler::note_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who) {
  ConnectionState& state = connections_[uint64_t(connection)];
  for (const Errand& bond : state.bonds)
    if (bond.is(lane, who)) return;
  if (state.bonds.size() >= state.prune_at) {  // some may have ended by expiry, or by an unlock elsewhere
    std::erase_if(state.bonds, [&](const Errand& bond) {
      return !app_.engine().has_bond(bond.lane(), bond.who(), BondId(uint64_t(connection)));
    });
    state.prune_at = std::max<size_t>(64, state.bonds.size() * 2);
  }
  state.bonds.emplace_back(lane, who);
  loop_.watch(connection);
}

void LoopHandler::forget_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who) {
  if (connections_.empty()) return;
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end()) return;
  std::erase_if(found->second.bonds, [&](const Errand& bond) { return bond.is(lane, who); });
  erase_if_plain(connection);
}

}  // namespace turnstile
