#include "server/loop_handler.h"

#include "api/answer_writer.h"

namespace turnstile {

LoopHandler::LoopHandler(App& app, http::Loop& loop)
    : app_(app), loop_(loop), parser_(app.settings().api), query_(app.settings().api) {}

http::Outcome LoopHandler::handle(const Request& request, Responder& responder) {
  const std::optional<Path> path = find_path(request.path);
  if (!path) return respond_error(responder, make_error(ErrorCode::unknown_path));
  const PathMethod method = request.method == http::Method::get    ? kGet
                            : request.method == http::Method::post ? kPost
                            : request.method == http::Method::head ? kHead
                                                                   : PathMethod(0);
  if (!allows(*path, method))
    return respond_error(responder, make_error(ErrorCode::method_not_allowed), allow_header(*path));
  return route(*path, request, responder);
}

http::Outcome LoopHandler::route(Path path, const Request& request, Responder& responder) {
  switch (path) {
    case Path::lock:
      return lock(request, responder);
    case Path::unlock:
      return unlock(request, responder);
    case Path::renew:
      return renew(request, responder);
    case Path::cancel:
      return cancel(request, responder);
    case Path::batch:
      return batch(request, responder);
    case Path::lock_status:
      return status(request, responder);
    case Path::locks:
      return list(request, responder);
    case Path::lock_subscribe:
    case Path::subscribe:
      return subscribe(request, responder);
    case Path::events:
      return events(request, responder);
    case Path::refs:
      return references(request, responder);
    case Path::refs_add:
      return change_reference(request, responder, true);
    case Path::refs_release:
      return change_reference(request, responder, false);
    case Path::refs_release_node:
      return release_node(request, responder);
    case Path::admin_break:
      return break_hold(request, responder);
    default:
      return info(path, responder);
  }
}

http::Outcome LoopHandler::respond(const Request& request, Responder& responder, unsigned status) {
  http::Response response;
  response.status = status;
  response.body = body_;
  response.release = effects_.sequence;
  await(response.release);
  responder.respond(response);
  app_.metrics().count_request(status);
  settle(request.connection);
  return Outcome::answered;
}

http::Outcome LoopHandler::respond_text(Responder& responder, std::string_view content_type,
                                        std::string_view text) {
  http::Response response;
  response.content_type = content_type;
  response.body = text;
  responder.respond(response);
  app_.metrics().count_request(response.status);
  return Outcome::answered;
}

http::Outcome LoopHandler::respond_error(Responder& responder, const ApiError& error,
                                         std::string_view more_headers) {
  body_.clear();
  append_error_json(body_, error);
  http::Response response;
  response.status = error.status;
  response.extra_headers = more_headers.empty() ? error.headers : more_headers;
  response.body = body_;
  response.close = app_.stopping();
  responder.respond(response);
  app_.metrics().count_request(error.status);
  return Outcome::answered;
}

bool LoopHandler::accepts_work(Responder& responder) {
  if (app_.stopping()) {
    respond_error(responder, make_error(ErrorCode::shutting_down));
    return false;
  }
  if (app_.journal().overloaded()) {
    respond_error(responder, make_error(ErrorCode::store_unavailable));
    return false;
  }
  return true;
}

void LoopHandler::settle(http::ConnectionId connection) {
  if (effects_.step != 0) note_unwritten({connection, effects_.sequence, effects_.step, Time{}});
  app_.distribute(effects_, this);
}

void LoopHandler::settle_without_answer() {
  app_.router().release(StepId(effects_.step));
  app_.distribute(effects_, this);
}

// The answers of one connection that are given in one go (a pipeline, a batch) leave together, behind the
// highest of their sequences: so do their events.
void LoopHandler::note_unwritten(const Unwritten& entry) {
  for (auto at = unwritten_.rbegin(); at != unwritten_.rend() && at->connection == entry.connection; ++at)
    at->sequence = std::max(at->sequence, entry.sequence);
  unwritten_.push_back(entry);
}

void LoopHandler::await(uint64_t sequence) {
  if (sequence > released_ && app_.await_durable(loop_.index(), sequence)) release(app_.journal().durable());
}

void LoopHandler::release(uint64_t sequence) {
  released_ = sequence;
  loop_.release(sequence);
}

// Answers up to released_ are with the kernel now: their events may follow (S30).
void LoopHandler::on_written() {
  if (unwritten_.empty()) return;
  written_.clear();
  while (!unwritten_.empty() && unwritten_.front().sequence <= released_) {
    const Unwritten& done = unwritten_.front();
    if (done.step != 0) written_.push_back(StepId(done.step));
    if (done.granted_at != Time{})
      app_.metrics().observe_handover(std::chrono::duration<double>(app_.now() - done.granted_at).count());
    unwritten_.pop_front();
  }
  if (!written_.empty()) app_.router().release(written_);
}

void LoopHandler::tick() {
  on_written();  // the answers of connections that broke will never be written; their events need not wait
                 // longer
  send_comments();
}

std::string LoopHandler::error_body(unsigned status, std::string_view message) {
  std::string body;
  append_error_json(body, make_error(error_of_http_status(status), std::string(message)));
  app_.metrics().count_request(status);
  return body;
}

void LoopHandler::deliver(const ReadyAnswer& answer) {
  const auto found = connections_.find(uint64_t(answer.connection));
  if (found != connections_.end()) {
    found->second.polls = false;
    erase_if_plain(answer.connection);
  }
  http::Response response;
  response.status = answer.status;
  response.body = answer.body;
  response.release = answer.release;
  if (answer.granted_at != Time{}) note_unwritten({answer.connection, answer.release, 0, answer.granted_at});
  await(answer.release);
  loop_.answer(answer.connection, response);
  app_.metrics().count_request(answer.status);
}

void LoopHandler::on_timer(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end() || !found->second.polls) return;
  const Errand poll = found->second.poll;
  const std::optional<LockAnswer> answer =
      app_.engine().end_poll(poll.lane(), poll.who(), PollId(uint64_t(connection)), app_.now(), fresh());
  if (!answer) return;  // its wake is under way
  const unsigned status = append_lock_answer(body_, *answer, poll.lane());
  settle_without_answer();
  deliver({connection, status, body_, effects_.sequence, Time{}});
}

void LoopHandler::on_closed(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end()) return;
  const ConnectionState state = std::move(found->second);
  connections_.erase(found);
  const uint64_t id = uint64_t(connection);
  const Time now = app_.now();
  if (state.polls) {
    app_.engine().break_poll(state.poll.lane(), state.poll.who(), PollId(id), now, fresh());
    settle_without_answer();
    loop_.close(connection);  // a half-closed one is as good as gone (S21)
  }
  if (state.streams) {
    app_.router().unsubscribe(SubscriberId(id));
    app_.close_stream();
    if (state.stream_is_bond) {
      app_.engine().close_bond(state.stream.lane(), state.stream.who(), BondId(id), now, fresh());
      settle_without_answer();
    }
  }
  for (const Errand& bond : state.bonds) {
    app_.engine().close_bond(bond.lane(), bond.who(), BondId(id), now, fresh());
    settle_without_answer();
  }
}

void LoopHandler::erase_if_plain(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end()) return;
  const ConnectionState& state = found->second;
  if (!state.polls && !state.streams && state.bonds.empty()) connections_.erase(found);
}

void LoopHandler::shut_down() {
  std::vector<uint64_t> polls, streams;
  for (const auto& [id, state] : connections_) {
    if (state.polls) polls.push_back(id);
    if (state.streams) streams.push_back(id);
  }
  std::string body;
  const ApiError error = make_error(ErrorCode::shutting_down);
  append_error_json(body, error);
  for (uint64_t id : polls) {
    http::Response response;
    response.status = error.status;
    response.extra_headers = error.headers;
    response.body = body;
    response.close = true;
    connections_[id].polls = false;  // its place in the queue stays: the client asks again elsewhere or later
    loop_.answer(http::ConnectionId(id), response);
  }
  for (uint64_t id : streams) loop_.close(http::ConnectionId(id));
}

void LoopHandler::log_decision(std::string_view call, const LaneName& lane, const Requester& who,
                               unsigned status) {
  if (!log_enabled(LogLevel::debug)) return;
  log_line(LogLevel::debug, call,
           {{"type", lane.operation.text},
            {"resource_id", lane.resource.text},
            {"node_id", who.node.text},
            {"request_id", who.request.text},
            {"status", status},
            {"answer", std::string_view(body_)}});
}

}  // namespace turnstile
