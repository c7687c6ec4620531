#include "server/loop_handler.h"

#include "api/answer_writer.h"
#include "base/plant.h"

namespace turnstile {
namespace {

constexpr size_t kMostBatchAnswer = 4 * 1024 * 1024;  // bytes; beyond it further items are not carried out
constexpr size_t kLargestKept = 256 * 1024;           // memory that is kept for the next answer

template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};

}  // namespace

LoopHandler::LoopHandler(Common& common, http::Loop& loop)
    : common_(common), loop_(loop), admission_(common.access()), reader_(common.settings().api) {}

http::Handled LoopHandler::handle(const Request& request, Responder& responder) {
  const std::optional<Path> path = find_path(request.path);
  if (admission_.is_foreign(request, path)) return refuse(request, responder, ErrorCode::foreign_origin);
  if (request.method == http::Method::options) return respond_options(request, responder);
  if (!admission_.admit(request, path)) return refuse_login(request, responder);
  if (!path) return respond_error(responder, make_error(ErrorCode::unknown_path));
  const PathMethod method = request.method == http::Method::get    ? kGet
                            : request.method == http::Method::post ? kPost
                            : request.method == http::Method::head ? kHead
                                                                   : kNoMethodOfOurs;
  if (!allows(*path, method))
    return respond_error(responder, make_error(ErrorCode::method_not_allowed), allow_header(*path));
  if (const access::Principal* who = admission_.who())
    if (const access::Barrier barrier = access::may(*who, *path); barrier != access::Barrier::none)
      return refuse_command(request, responder, barrier, {});
  if (!is_command(*path)) return info(*path, request, responder);

  if (service_ == nullptr && common_.standing().replicated) return stand_by(request, responder);
  const bool reads = *path == Path::locks || *path == Path::refs;
  if (const auto why = why_not(reads)) return respond_error(responder, make_error(*why));
  ApiResult<Command> command = reader_.read(*path, method == kPost, request.query, request.body);
  if (!command) return respond_error(responder, command.error());
  if (const access::Barrier barrier = barrier_to(*command); barrier != access::Barrier::none)
    return refuse_command(request, responder, barrier, access::subject_of(*command));
  return std::visit(
      Overloaded{
          [&](LockRequest& lock) {
            if (lock.wait.count() > 0) lock.command.poll = PollId(uint64_t(request.connection));
            lock.command.bond = BondId(uint64_t(request.connection));
            return carry_out_one(*command, request, responder);
          },
          [&](const BatchCommand& each) { return batch(each, request, responder); },
          [&](const ListCommand& each) { return list(each, request, responder); },
          [&](const ReleaseNodeCommand& each) { return release_node(each, request, responder); },
          [&](const SubscribeCommand& each) { return subscribe(each, request, responder); },
          [&](const EventsRequest& each) { return events(each, request, responder); },
          [&](const OneStep auto&) { return carry_out_one(*command, request, responder); },
      },
      *command);
}

http::Handled LoopHandler::carry_out_one(const Command& command, const Request& request,
                                         Responder& responder) {
  fresh();
  const CarriedOut done = carry_out(service_->engine(), command, service_->now(), effects_, body_);
  if (const auto* lock = std::get_if<LockRequest>(&command)) {
    if (done.bonded) note_bond(request.connection, lock->command.lane, lock->command.who);
    if (done.waits) return wait(*lock, request.connection);
  } else if (done.freed) {
    const auto& unlock = std::get<UnlockCommand>(command);
    forget_bond(request.connection, unlock.lane, unlock.who);
  }
  if (planted(Plant::read_before_sync) && std::holds_alternative<StatusCommand>(command))
    effects_.sequence = 0;
  note_admin_act(request, command, done.status);
  return respond(request, responder, done.status);
}

http::Handled LoopHandler::batch(const BatchCommand& command, const Request& request, Responder& responder) {
  fresh();
  BatchFrame frame(body_);
  uint64_t sequence = 0;
  uint64_t refused = 0;
  std::string resource, node;  // of the first that was refused
  for (size_t i = 0; i < command.count; ++i) {
    const ApiResult<Command> item = reader_.next_in_batch();
    effects_.clear();
    frame.next_answer();
    if (!answer_item(item) && refused++ == 0) {
      const access::Subject subject = access::subject_of(*item);
      resource = subject.resource;
      node = subject.node;
    }
    const bool last_decides = planted(Plant::last_item_decides);
    sequence = last_decides ? effects_.sequence : std::max(sequence, effects_.sequence);
    settle(request.connection);
  }
  frame.finish();
  if (refused > 0) note_forbidden(request, {resource, node}, refused);
  effects_.clear();
  if (planted(Plant::batch_does_not_wait)) sequence = 0;
  effects_.sequence = sequence;  // the whole answer leaves when the last of its steps is safe
  return respond(request, responder, 200);
}

bool LoopHandler::answer_item(const ApiResult<Command>& item) {
  const auto refuse_item = [&](const ApiError& error) {
    append_error_json(body_, error, AnswerForm::in_batch);
  };
  if (!item) {
    refuse_item(item.error());
  } else if (body_.size() > kMostBatchAnswer) {
    refuse_item(make_error(ErrorCode::too_many_requests,
                           "not carried out: the answer of this batch has become as large as it may be; "
                           "send the rest in another one"));
  } else if (const access::Barrier barrier = barrier_to(*item); barrier != access::Barrier::none) {
    refuse_item(forbidden(barrier, access::subject_of(*item)));
    return false;
  } else {
    carry_out(service_->engine(), *item, service_->now(), effects_, body_, AnswerForm::in_batch);
  }
  return true;
}

http::Handled LoopHandler::respond(const Request& request, Responder& responder, unsigned status) {
  settle(request.connection);
  http::Response response;
  response.status = status;
  response.body = body_;
  response.gate = effects_.sequence;
  response.receipts = receipts_;
  responder.respond(response);
  common_.metrics().count_request(status);
  return Handled::answered;
}

http::Handled LoopHandler::respond_text(Responder& responder, std::string_view content_type,
                                        std::string_view text, std::string_view more_headers) {
  http::Response response;
  response.content_type = content_type;
  response.extra_headers = more_headers;
  response.body = text;
  responder.respond(response);
  common_.metrics().count_request(response.status);
  return Handled::answered;
}

http::Handled LoopHandler::respond_error(Responder& responder, const ApiError& error,
                                         std::string_view more_headers, uint64_t gate) {
  fresh();
  append_error_json(body_, error);
  http::Response response;
  response.status = error.status;
  response.extra_headers = more_headers.empty() ? error.headers : more_headers;
  response.body = body_;
  response.close = common_.stopping();
  response.gate = gate;
  responder.respond(response);
  common_.metrics().count_request(error.status);
  return Handled::answered;
}

http::Handled LoopHandler::respond_options(const Request& request, Responder& responder) {
  const std::string_view allowed = options_header(request.path);
  if (allowed.empty()) return respond_error(responder, make_error(ErrorCode::unknown_path));
  http::Response response;
  response.status = kOptionsStatus;
  response.extra_headers = allowed;
  responder.respond(response);
  common_.metrics().count_request(response.status);
  return Handled::answered;
}

std::optional<ErrorCode> LoopHandler::why_not(bool reads) const {
  if (service_ == nullptr) return ErrorCode::store_unavailable;
  if (reads) return std::nullopt;
  if (common_.stopping()) return ErrorCode::shutting_down;
  if (service_->journal().overloaded()) return ErrorCode::store_unavailable;
  return std::nullopt;
}

Effects& LoopHandler::fresh() {
  effects_.clear();
  body_.clear();
  if (body_.capacity() > kLargestKept) body_.shrink_to_fit();
  receipts_.clear();
  return effects_;
}

void LoopHandler::settle(http::ConnectionId connection) {
  if (planted(Plant::event_before_answer))
    service_->gate().unanswered(effects_);
  else if (effects_.step != 0)
    receipts_.push_back({connection, effects_.step, Time{}});
  service_->distribute(effects_, this);
}

void LoopHandler::settle_without_answer() {
  service_->gate().unanswered(effects_);
  service_->distribute(effects_, this);
}

bool LoopHandler::may_leave(uint64_t gate) {
  return service_ != nullptr && service_->gate().may_leave(loop_.index(), gate);
}

// Answers are with the kernel now: their events may follow (S30).
void LoopHandler::on_written(std::span<const http::Receipt> receipts) {
  if (service_ == nullptr) return;
  answered_.clear();
  for (const http::Receipt& receipt : receipts) {
    if (receipt.number & kPollReceipt)
      resolve_poll(receipt);
    else
      answered_.push_back(StepId(receipt.number));
  }
  service_->gate().answered(answered_);
}

std::string LoopHandler::error_body(unsigned status, std::string_view message) {
  std::string body;
  const ErrorCode code = error_of_http_status(status);
  // Of a limit the table's sentence says what to do; of a syntax error only http knows what is wrong.
  const bool is_limit = code != ErrorCode::invalid && code != ErrorCode::too_many_requests;
  append_error_json(body, is_limit ? make_error(code) : make_error(code, std::string(message)));
  common_.metrics().count_request(status);
  return body;
}

}  // namespace turnstile
