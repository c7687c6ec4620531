// Saying no: to who is not known, to who may not do what he asks, to other people's web pages; and what
// follows when the credentials change.
#include <algorithm>

#include "api/answer_writer.h"
#include "base/clock.h"
#include "server/loop_handler.h"

namespace turnstile {

using access::Barrier;

// Another site's page.
http::Handled LoopHandler::refuse(const Request& request, Responder& responder, ErrorCode why) {
  common_.access().foreign_origin.fetch_add(1, std::memory_order_relaxed);
  common_.access().note({"refused", {}, address_of(request), request.path, {}, {}, error_row(why).code});
  return respond_error(responder, make_error(why));
}

// 401, at once or after a while. Whoever waits for it keeps nothing but his connection.
http::Handled LoopHandler::refuse_login(const Request& request, Responder& responder) {
  AccessState& state = common_.access();
  const ErrorRow& row = error_row(ErrorCode::unauthorized);
  state.unauthorized.fetch_add(1, std::memory_order_relaxed);
  state.note({"refused", {}, address_of(request), request.path, {}, {}, row.code});
  std::string problem = admission_.problem().empty() ? std::string(row.message) : admission_.problem();
  const Duration delay = state.slow_down.failed(address_of(request), Time(machine_time().steady()));
  if (delay == Duration(0))
    return respond_error(responder, make_error(ErrorCode::unauthorized, std::move(problem)));
  connections_[uint64_t(request.connection)].refused = std::move(problem);
  loop_.set_timer(request.connection, delay);
  return Handled::waiting;
}

void LoopHandler::answer_refused(http::ConnectionId connection, const std::string& problem) {
  erase_if_plain(connection);
  const ApiError error = make_error(ErrorCode::unauthorized, problem);
  std::string body;
  append_error_json(body, error);
  http::Response response;
  response.status = error.status;
  response.extra_headers = error.headers;
  response.body = body;
  loop_.answer(connection, response);
  common_.metrics().count_request(error.status);
}

ApiError LoopHandler::forbidden(Barrier barrier, const access::Subject& subject) {
  common_.access().forbidden.fetch_add(1, std::memory_order_relaxed);
  return make_error(ErrorCode::forbidden, access::explain(barrier, *admission_.who(), subject));
}

void LoopHandler::note_forbidden(const Request& request, const access::Subject& subject, uint64_t count) {
  common_.access().note({"refused", admission_.who()->name, address_of(request), request.path,
                         subject.resource, subject.node, error_row(ErrorCode::forbidden).code, count});
}

http::Handled LoopHandler::refuse_command(const Request& request, Responder& responder, Barrier barrier,
                                          const access::Subject& subject) {
  note_forbidden(request, subject, 1);
  return respond_error(responder, forbidden(barrier, subject));
}

Barrier LoopHandler::barrier_to(const Command& command) const {
  const access::Principal* who = admission_.who();
  return who == nullptr ? Barrier::none : access::may(*who, command);
}

void LoopHandler::note_admin_act(const Request& request, const Command& command, unsigned status) {
  if (!std::holds_alternative<BreakCommand>(command) && !std::holds_alternative<ForgetCommand>(command))
    return;
  const access::Principal* who = admission_.who();
  const access::Subject subject = access::subject_of(command);
  common_.access().note({"admin", who == nullptr ? std::string_view() : who->name, address_of(request),
                         request.path, subject.resource, subject.node, status < 300 ? "ok" : "refused"});
}

// Who was removed stops at once, also where he has asked for something long before; everybody else notices
// nothing.
void LoopHandler::change_credentials(access::CredentialsPtr credentials) {
  admission_.change(std::move(credentials));
  std::vector<uint64_t> ended;
  for (auto& [id, state] : connections_)
    if (!may_go_on(state)) ended.push_back(id);
  for (const uint64_t id : ended) {
    on_closed(http::ConnectionId(id));
    loop_.close(http::ConnectionId(id));
  }
}

// Whether everything that hangs on this connection may still be asked for by who has. Notes who that is now.
bool LoopHandler::may_go_on(ConnectionState& state) {
  const auto still_works = [&](const Errand& errand, access::PrincipalPtr& by) {
    if (by == nullptr) return true;
    access::PrincipalPtr now = admission_.again(*by);
    if (now == nullptr ||
        access::may(*now, SubscribeCommand{errand.lane(), errand.who(), {}}) != Barrier::none)
      return false;
    by = std::move(now);
    return true;
  };
  for (Bond& bond : state.bonds)
    if (!still_works(bond, bond.by)) return false;
  if (state.poll) return still_works(*state.poll, state.by);
  if (state.by == nullptr || !(state.stream || state.walks)) return true;
  if (state.stream && state.stream->bond) return still_works(*state.stream->bond, state.by);
  access::PrincipalPtr now = admission_.again(*state.by);
  if (now == nullptr) return false;
  if (state.walks) return *now == *state.by;
  const Filter& filter = state.stream->filter;
  if (filter.kind == Filter::Kind::lane) return now->touches(ResourceId(filter.resource));
  // It may see what it sees now: all of it lies within one of the prefixes of today.
  const auto is_seen = [&](const std::string& prefix) { return now->touches(ResourceId(prefix)); };
  return now->resources.empty() || (!filter.within.empty() && std::ranges::all_of(filter.within, is_seen));
}

}  // namespace turnstile
