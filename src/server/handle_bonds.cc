// What a connection is besides requests and answers: a long poll, a bond, and what follows when it ends.
#include "api/answer_writer.h"
#include "server/loop_handler.h"

namespace turnstile {

// S24: the answer stays open.
http::Handled LoopHandler::wait(const LockRequest& request, http::ConnectionId connection) {
  connections_[uint64_t(connection)].poll.emplace(request.command.lane, request.command.who);
  loop_.set_timer(connection, request.wait);
  settle_without_answer();
  return Handled::waiting;
}

void LoopHandler::answer_poll(const PollAnswer& answer) {
  const auto connection = http::ConnectionId(uint64_t(answer.poll));
  const bool granted = answer.granted != Token::none;
  const auto found = connections_.find(uint64_t(connection));
  if (found != connections_.end()) {
    // Until it is written it may still be lost with its connection; then nobody knows of the grant.
    found->second.granted = answer.granted;
    if (!granted) {
      found->second.poll.reset();
      erase_if_plain(connection);
    }
  }
  http::Receipt receipt{connection, kPollReceipt, answer.granted_at};
  http::Response response;
  response.status = answer.status;
  response.body = answer.body;
  response.gate = answer.sequence;
  response.receipts = {&receipt, 1};
  receipt.lost = !loop_.answer(connection, response);
  if (receipt.lost) resolve_poll(receipt);
  app_.metrics().count_request(answer.status);
}

// The answer of a poll has been written, or its connection has gone.
void LoopHandler::resolve_poll(const http::Receipt& receipt) {
  service_->answered_poll();
  if (receipt.time == Time{}) return;  // not a grant
  const Time now = service_->now();
  if (!receipt.lost) app_.metrics().observe_handover(std::chrono::duration<double>(now - receipt.time).count());
  const auto found = connections_.find(uint64_t(receipt.connection));
  if (found == connections_.end() || found->second.granted == Token::none) return;
  const Token token = std::exchange(found->second.granted, Token::none);
  const Errand poll = *std::exchange(found->second.poll, std::nullopt);
  erase_if_plain(receipt.connection);
  if (!receipt.lost) return;
  service_->engine().undelivered(poll.lane(), poll.who(), token, now, fresh());  // S36
  settle_without_answer();
}

void LoopHandler::on_timer(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end() || !found->second.polls()) return;
  const Errand& poll = *found->second.poll;
  const std::optional<LockAnswer> answer = service_->engine().end_poll(
      poll.lane(), poll.who(), PollId(uint64_t(connection)), service_->now(), fresh());
  if (!answer) return settle_without_answer();  // its wake is under way, perhaps in these effects
  PollAnswer queued;
  queued.poll = PollId(uint64_t(connection));
  queued.status = append_lock_answer(queued.body, *answer, poll.lane());
  queued.sequence = effects_.sequence;
  settle_without_answer();
  answer_poll(queued);
}

void LoopHandler::on_closed(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found == connections_.end()) return;
  const ConnectionState state = std::move(found->second);
  connections_.erase(found);
  const uint64_t id = uint64_t(connection);
  if (state.granted != Token::none) {  // its receipt is still to come, and says whether the answer left
    connections_[id].granted = state.granted;
    connections_[id].poll = state.poll;
  }
  if (state.stream) --streams_;
  if (service_ == nullptr) return;
  const Time now = service_->now();
  if (state.polls()) {
    service_->engine().break_poll(state.poll->lane(), state.poll->who(), PollId(id), now, fresh());
    settle_without_answer();
    loop_.close(connection);  // a half-closed one is as good as gone (S21)
  }
  if (state.stream) close_stream(*state.stream, connection);
  for (const Errand& bond : state.bonds) {
    service_->engine().close_bond(bond.lane(), bond.who(), BondId(id), now, fresh());
    settle_without_answer();
  }
}

void LoopHandler::note_bond(http::ConnectionId connection, const LaneName& lane, const Requester& who) {
  ConnectionState& state = connections_[uint64_t(connection)];
  for (const Errand& bond : state.bonds)
    if (bond.is(lane, who)) return;
  if (state.bonds.size() >= state.prune_at) {  // some may have ended by expiry, or by an unlock elsewhere
    std::erase_if(state.bonds, [&](const Errand& bond) {
      return !service_->engine().has_bond(bond.lane(), bond.who(), BondId(uint64_t(connection)));
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

void LoopHandler::erase_if_plain(http::ConnectionId connection) {
  const auto found = connections_.find(uint64_t(connection));
  if (found != connections_.end() && found->second.is_plain()) connections_.erase(found);
}

void LoopHandler::end_life() {
  shut_down(ErrorCode::store_unavailable);
  for (const auto& [id, state] : connections_)
    if (state.stream) app_.close_stream();
  streams_ = 0;
  connections_.clear();
  walks_.clear();
  service_ = nullptr;
  loop_.drop_gated();  // what waits behind the gate of that life never leaves
}

void LoopHandler::shut_down(ErrorCode why) {
  std::vector<uint64_t> waiting, streams;
  for (const auto& [id, state] : connections_) {
    if (state.polls() || state.walks) waiting.push_back(id);
    if (state.stream) streams.push_back(id);
  }
  std::string body;
  const ApiError error = make_error(why);
  append_error_json(body, error);
  for (uint64_t id : waiting) {
    http::Response response;
    response.status = error.status;
    response.extra_headers = error.headers;
    response.body = body;
    response.close = true;
    connections_[id].poll.reset();  // its place in the queue stays: the client asks again elsewhere or later
    connections_[id].walks = false;
    loop_.answer(http::ConnectionId(id), response);
  }
  for (uint64_t id : streams) loop_.close(http::ConnectionId(id));
}

}  // namespace turnstile
