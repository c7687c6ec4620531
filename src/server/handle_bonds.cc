// What a connection is besides requests and answers: a long poll, a bond, and what follows when it ends.
#include "api/answer_writer.h"
#include "base/plant.h"
#include "server/loop_handler.h"

namespace turnstile {

// S24: the answer stays open.
http::Handled LoopHandler::wait(const LockRequest& request, http::ConnectionId connection) {
  ConnectionState& state = connections_[uint64_t(connection)];
  state.poll.emplace(request.command.lane, request.command.who);
  state.by = admission_.who_shared();
  loop_.set_timer(connection, request.wait);
  settle_without_answer();
  return Handled::waiting;
}

void LoopHandler::answer_poll(const PollAnswer& answer) {
  const auto connection = http::ConnectionId(uint64_t(answer.poll));
  http::Receipt receipt{connection, kPollReceipt, answer.granted_at};
  const auto found = connections_.find(uint64_t(connection));
  if (found != connections_.end() && found->second.poll) {
    if (answer.granted != Token::none) {
      receipt.number |= ++last_grant_;
      unwritten_.emplace(last_grant_, Grant{*std::move(found->second.poll), answer.granted});
    }
    found->second.poll.reset();
    erase_if_plain(connection);
  }
  http::Response response;
  response.status = answer.status;
  response.body = answer.body;
  response.gate = answer.sequence;
  response.receipts = {&receipt, 1};
  receipt.lost = !loop_.answer(connection, response);
  if (receipt.lost) resolve_poll(receipt);
  common_.metrics().count_request(answer.status);
}

// The answer of a poll has been written, or its connection has gone.
void LoopHandler::resolve_poll(const http::Receipt& receipt) {
  service_->answered_poll();
  const Time now = service_->now();
  if (!receipt.lost && receipt.time != Time{})
    common_.metrics().observe_handover(std::chrono::duration<double>(now - receipt.time).count());
  const auto grant = unwritten_.extract(receipt.number & ~kPollReceipt);
  if (!grant || !receipt.lost) return;
  const Errand& errand = grant.mapped().errand;
  Effects effects;  // this may be in the middle of another step's
  service_->engine().undelivered(errand.lane(), errand.who(), grant.mapped().token, now, effects);  // S36
  service_->gate().unanswered(effects);
  service_->distribute(effects, this);
}

void LoopHandler::on_timer(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end()) return;
  if (found->second.refused) return answer_refused(connection, *std::exchange(found->second.refused, {}));
  if (!found->second.poll || service_ == nullptr) return;
  const Errand poll = *found->second.poll;
  const std::optional<LockAnswer> answer = service_->engine().end_poll(
      poll.lane(), poll.who(), PollId(uint64_t(connection)), service_->now(), fresh());
  if (!answer) return settle_without_answer();  // its wake is under way, perhaps in these effects
  PollAnswer queued;
  queued.poll = PollId(uint64_t(connection));
  queued.status = append_lock_answer(queued.body, *answer, poll.lane());
  queued.sequence = effects_.sequence;
  settle_without_answer();
  service_->begin_poll_answer();
  answer_poll(queued);
}

// A server that stops closes connections itself. That is no sign that anybody has gone: whoever lives by one
// has its full time again when the next life begins (S31).
void LoopHandler::on_closed(http::ConnectionId connection) {
  if (const auto passed_on = forwarded_.extract(uint64_t(connection))) passed_on.mapped()->abandon();
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end()) return;
  const ConnectionState state = std::move(found->second);
  connections_.erase(found);
  const uint64_t id = uint64_t(connection);
  if (state.walks) connections_[id].walks = true;  // who only half-closed still wants the answer
  if (state.stream) close_stream(*state.stream, connection);
  if (state.poll || state.refused) loop_.close(connection);  // a half-closed one is as good as gone (S21)
  if (service_ == nullptr || common_.stopping()) return;
  const Time now = service_->now();
  if (state.poll) {
    service_->engine().break_poll(state.poll->lane(), state.poll->who(), PollId(id), now, fresh());
    settle_without_answer();
  }
  if (state.stream && state.stream->bond) {
    const Errand& bond = *state.stream->bond;
    service_->engine().close_bond(bond.lane(), bond.who(), BondId(id), now, fresh());
    settle_without_answer();
  }
  for (const Bond& bond : state.bonds) {
    service_->engine().close_bond(bond.lane(), bond.who(), BondId(id), now, fresh());
    settle_without_answer();
  }
}

void LoopHandler::note_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who) {
  ConnectionState& state = connections_[uint64_t(connection)];
  for (const Bond& bond : state.bonds)
    if (bond.is(lane, who)) return;
  if (state.bonds.size() >= state.prune_at) {  // some may have ended by expiry, or by an unlock elsewhere
    std::erase_if(state.bonds, [&](const Bond& bond) {
      return !service_->engine().has_bond(bond.lane(), bond.who(), BondId(uint64_t(connection)));
    });
    state.prune_at = std::max<size_t>(64, state.bonds.size() * 2);
  }
  state.bonds.emplace_back(lane, who, admission_.who_shared());
  loop_.watch(connection);
}

void LoopHandler::forget_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who) {
  if (connections_.empty()) return;
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end()) return;
  // An unlock that was repeated, or was of another request of the node's, has ended nothing of this one's.
  const bool lives_by_it = service_->engine().has_bond(lane, who, BondId(uint64_t(connection)));
  if (lives_by_it && !planted(Plant::bond_lost_by_repeat)) return;
  std::erase_if(found->second.bonds, [&](const Bond& bond) { return bond.is(lane, who); });
  erase_if_plain(connection);
}

void LoopHandler::erase_if_plain(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found != connections_.end() && found->second.is_plain()) connections_.erase(found);
}

void LoopHandler::end_life() {
  service_ = nullptr;  // nothing of it is asked any more,
  // and what it had to say and has not said never leaves.
  const bool replicated = common_.standing().replicated;
  const ErrorCode why = replicated ? ErrorCode::outcome_unknown : ErrorCode::store_unavailable;
  if (replicated) {
    const ApiError error = make_error(why);
    std::string body;
    append_error_json(body, error);
    loop_.replace_output({.status = error.status,
                          .extra_headers = error.headers,
                          .body = body,
                          .receipts = {},
                          .close = true});
  } else {
    loop_.drop_output();
  }
  shut_down(why);
  // The next life knows of no bond: who lives by a connection learns that it must make a new one.
  for (const auto& [id, state] : connections_) {
    if (state.stream) close_stream(*state.stream, http::ConnectionId(id));
    if (!state.bonds.empty()) loop_.close(http::ConnectionId(id));
  }
  connections_.clear();
  unwritten_.clear();
  walks_.clear();
}

void LoopHandler::shut_down(ErrorCode why) {
  std::vector<uint64_t> waiting, streams;
  for (const auto& [id, state] : connections_) {
    if (state.poll || state.walks || state.refused) waiting.push_back(id);
    if (state.stream) streams.push_back(id);
  }
  std::string body;
  const ApiError error = make_error(why);
  append_error_json(body, error);
  for (uint64_t id : waiting) {
    if (!end_waiting(id)) continue;
    http::Response response;
    response.status = error.status;
    response.extra_headers = error.headers;
    response.body = body;
    response.close = true;
    loop_.answer(http::ConnectionId(id), response);
  }
  for (uint64_t id : streams) loop_.close(http::ConnectionId(id));
  for (const auto& [id, forwarding] : forwarded_) forwarding->hurry();
}

// Forgets what the connection waits for. Its place in a queue stays: the client asks again elsewhere or
// later. False: its answer is on the way.
bool LoopHandler::end_waiting(uint64_t id) {
  ConnectionState& state = connections_[id];
  if (state.poll && service_ != nullptr) {
    const bool queued =
        service_->engine()
            .end_poll(state.poll->lane(), state.poll->who(), PollId(id), service_->now(), fresh())
            .has_value();
    settle_without_answer();
    if (!queued) return false;
  }
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  found->second.poll.reset();
  found->second.walks = false;
  found->second.refused.reset();
  erase_if_plain(http::ConnectionId(id));
  return true;
}

}  // namespace turnstile
