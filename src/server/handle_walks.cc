// The calls that look at very many resources: a slice of them a turn, so that nobody else waits for the
// whole.
//
// Several walks of one loop take turns. What is small enough for one slice is answered at once, as any other
// call.
#include "api/answer_writer.h"
#include "server/loop_handler.h"

namespace turnstile {
namespace {

constexpr size_t kMostInASlice = 1000;  // resources; a few milliseconds when none of them is in a cache
constexpr size_t kMostWalks = 64;       // of one loop at a time

}  // namespace

http::Handled LoopHandler::list(ListCommand command, const Request& request, Responder& responder) {
  command.within = admission_.within();
  Walk walk;
  walk.list = std::make_unique<ListWalk>(command);
  return begin_walk(std::move(walk), request, responder);
}

http::Handled LoopHandler::release_node(const ReleaseNodeCommand& command, const Request& request,
                                        Responder& responder) {
  Walk walk;
  walk.node = command.node.text;
  walk.release = std::make_unique<ReleaseNodeWalk>(command.node, admission_.within());
  return begin_walk(std::move(walk), request, responder);
}

http::Handled LoopHandler::begin_walk(Walk walk, const Request& request, Responder& responder) {
  if (walks_.size() >= kMostWalks)
    return respond_error(responder,
                         make_error(ErrorCode::too_many_requests,
                                    "as many lists as may be are being read: try again in a moment"));
  if (go_on(walk)) return respond(request, responder, write_answer(walk));
  walk.connection = request.connection;
  ConnectionState& state = connections_[uint64_t(request.connection)];
  state.walks = true;
  state.by = admission_.who_shared();
  walks_.push_back(std::move(walk));
  if (walks_.size() == 1) loop_.post([this] { walk_on(); });
  return Handled::waiting;
}

// One slice. True: the walk is finished.
bool LoopHandler::go_on(Walk& walk) {
  Engine& engine = service_->engine();
  const Time now = service_->now();
  if (walk.list) return engine.list_some(*walk.list, kMostInASlice, now);
  return engine.release_node_some(*walk.release, kMostInASlice, now, fresh(), [this](Effects& step) {
    service_->gate().unanswered(step);
    service_->distribute(step, this);
  });
}

// Into body_, behind the sequence in effects_. Returns the status.
unsigned LoopHandler::write_answer(const Walk& walk) {
  fresh();
  if (walk.release) {
    effects_.sequence = walk.release->sequence();
    return append_release_node_answer(body_, walk.release->answer(), NodeId(walk.node));
  }
  effects_.sequence = walk.list->sequence();
  const ListAnswer& answer = walk.list->answer();
  std::optional<LaneName> next;
  if (answer.more) next = answer.next;
  return append_list_answer(body_, answer.page, next, answer.matched);
}

// A slice of the walk whose turn it is.
void LoopHandler::walk_on() {
  if (walks_.empty()) return;
  Walk walk = std::move(walks_.front());
  walks_.pop_front();
  const auto found = connections_.find(uint64_t(walk.connection));
  if (found == connections_.end() || !found->second.walks || service_ == nullptr) {
    // Its caller has gone.
  } else if (!go_on(walk)) {
    walks_.push_back(std::move(walk));
  } else {
    found->second.walks = false;
    erase_if_plain(walk.connection);
    http::Response response;
    response.status = write_answer(walk);
    response.body = body_;
    response.gate = effects_.sequence;
    loop_.answer(walk.connection, response);
    common_.metrics().count_request(response.status);
  }
  if (!walks_.empty()) loop_.post([this] { walk_on(); });
}

}  // namespace turnstile
