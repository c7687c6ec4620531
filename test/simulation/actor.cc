#include "actor.h"

#include <fmt/format.h>

#include <utility>

namespace turnstile::sim {

// A connection for requests, several of which may be under way.
class Actor::Connection final : public Remote {
 public:
  Connection(Actor& actor) : actor_(actor) {}

  void on_answer(unsigned status, const std::string& body, uint64_t stamp) override {
    if (under_way.empty()) return;
    auto [calls, errands] = std::move(under_way.front());
    under_way.pop_front();
    actor_.history_.end(calls, status, body, stamp, actor_.schedule_.now());
    for (const Call* call : calls) {
      actor_.schedule_.note(show(*call, Schedule::kStart));
      if (call->state == "skipped" && !call->told_result.empty()) ++actor_.rare_["results told to who skips"];
      if (call->kind == CallKind::forget && call->done) ++actor_.rare_["successes forgotten"];
    }
    actor_.answered(errands, calls);
    if (status == 307 && std::exchange(open, false)) close_by_client(link, false);  // another one leads
  }
  void on_bytes(const std::string&, uint64_t) override {}
  void on_closed() override { open = false; }

  LinkPtr link;
  bool open = true;
  std::deque<std::pair<std::vector<Call*>, std::vector<Errand*>>> under_way;

 private:
  Actor& actor_;
};

// A connection that became an event stream.
class Actor::Stream final : public Remote {
 public:
  Stream(Actor& actor, std::string target, bool comes_back)
      : actor_(actor), target_(std::move(target)), comes_back_(comes_back) {}

  void open() {
    link = actor_.connect_(*this);
    if (!link) return try_later();
    seen_ = &actor_.history_.streams.emplace_back();
    seen_->type = query_field(target_, "type");
    seen_->resource = query_field(target_, "resource_id");
    seen_->node = query_field(target_, "node_id");
    seen_->request = query_field(target_, "request_id");
    seen_->after = last_;
    seen_->link = link;
    seen_->opened = actor_.schedule_.now();
    sim::send(link, {.post = false,
                     .target = target_,
                     .body = {},
                     .last_event_id = last_ == 0 ? std::string() : std::to_string(last_)});
  }
  // An error instead of a stream.
  void on_answer(unsigned, const std::string&, uint64_t) override {
    close_by_client(link, false), try_later(5);
  }
  void on_bytes(const std::string& bytes, uint64_t stamp) override {
    const size_t before = seen_->events.size();
    History::read(*seen_, bytes, stamp, actor_.schedule_.now());
    for (size_t i = before; i < seen_->events.size(); ++i) {
      const SeenEvent& event = seen_->events[i];
      if (event.id != 0) last_ = event.id;
      if (event.reset) ++actor_.rare_["resets seen by readers"];
      actor_.schedule_.note(fmt::format("{} sees {} {} {} [{}/{}] token {} id {}", actor_.node_, event.kind,
                                        event.type, event.resource, event.node, event.request, event.token,
                                        event.id));
    }
  }
  void on_closed() override { try_later(); }
  void end() { comes_back_ = false; }
  bool is_of_everything() const { return target_ == "/events"; }

  LinkPtr link;

 private:
  // It would be told the same again at once.
  void try_later(int patience = 1) {
    if (!comes_back_) return;
    ++actor_.rare_["streams that came back"];
    actor_.schedule_.after(Duration(actor_.schedule_.random.between(100, 60'000 * patience)), [this] {
      if (comes_back_) open();
    });
  }

  Actor& actor_;
  const std::string target_;
  bool comes_back_;
  SeenStream* seen_ = nullptr;
  uint64_t last_ = 0;
};

Actor::Actor(std::string node, Schedule& schedule, History& history, Connect connect, Rare& rare)
    : node_(std::move(node)),
      schedule_(schedule),
      history_(history),
      connect_(std::move(connect)),
      rare_(rare) {}

Actor::~Actor() = default;

// One of two, so that calls of an actor overtake each other.
Actor::Connection* Actor::connection() {
  std::vector<Connection*> open;
  for (auto each = connections_.rbegin(); each != connections_.rend() && open.size() < 2; ++each)
    if ((*each)->open) open.push_back(each->get());
  if (open.size() == 2 || (open.size() == 1 && !schedule_.random.chance(3))) return schedule_.random.of(open);
  auto made = std::make_unique<Connection>(*this);
  made->link = connect_(*made);
  if (!made->link) return nullptr;
  connections_.push_back(std::move(made));
  return connections_.back().get();
}

void Actor::send(WireRequest request, std::vector<Errand*> errands) {
  Connection* const wire = connection();
  if (wire == nullptr) return;
  std::vector<Call*> calls = history_.begin(request, wire->link, schedule_.now());
  wire->under_way.emplace_back(std::move(calls), std::move(errands));
  sim::send(wire->link, std::move(request));
}

void Actor::answered(const std::vector<Errand*>& errands, const std::vector<Call*>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = *calls[i];
    Errand* const errand = i < errands.size() ? errands[i] : nullptr;
    if (errand == nullptr) continue;
    if (call.kind == CallKind::lock) {
      errand->waits = call.state == "queued";
      if (call.state == "acquired") errand->token = call.told_token;
    }
    if (call.kind == CallKind::status && call.told_token != 0) errand->token = call.told_token;
    if (call.kind == CallKind::unlock && call.done) {
      last_token_ = std::exchange(errand->token, 0);
      errand->waits = false;
    }
    // Nobody is asked for what came too late: what it was granted is given back.
    if (left_ && call.kind == CallKind::lock && errand->token != 0)
      send({.target = "/unlock", .body = unlock_body({.how = How::failure}, *errand)}, {errand});
  }
}

Actor::Errand* Actor::latest(const Move& move) {
  for (auto each = errands_.rbegin(); each != errands_.rend(); ++each)
    if (each->type == move.type && each->resource == move.resource && (each->token != 0 || each->waits))
      return &*each;
  for (auto each = errands_.rbegin(); each != errands_.rend(); ++each)
    if (each->type == move.type && each->resource == move.resource) return &*each;
  return nullptr;
}

Actor::Errand& Actor::errand_for(const Move& move) {
  if (Errand* const errand = latest(move); errand != nullptr && (move.again || !move.named)) return *errand;
  Errand& made = errands_.emplace_back();
  made.type = move.type;
  made.resource = move.resource;
  if (move.named) made.request = "q" + std::to_string(++last_request_);
  return made;
}

std::string Actor::who_and_lane(const Errand& errand) const {
  std::string text =
      fmt::format(R"("type":"{}","resource_id":"{}","node_id":"{}")", errand.type, errand.resource, node_);
  if (!errand.request.empty()) text += fmt::format(R"(,"request_id":"{}")", errand.request);
  return text;
}

std::string Actor::lock_body(const Move& move, const Errand& errand) const {
  std::string body = "{" + who_and_lane(errand);
  if (!move.scope.empty()) body += fmt::format(R"(,"scope":"{}")", move.scope);
  if (move.lease.count() > 0) body += fmt::format(R"(,"lease_ms":{})", to_ms(move.lease));
  if (move.wait.count() > 0) body += fmt::format(R"(,"wait_ms":{})", to_ms(move.wait));
  if (move.monitor) body += R"(,"monitor":true)";
  if (move.dereference) body += R"(,"dereference":true)";
  return body + "}";
}

std::string Actor::unlock_body(const Move& move, const Errand& errand) {
  std::string body = "{" + who_and_lane(errand);
  if (move.token == Which::right && errand.token != 0) body += fmt::format(R"(,"token":{})", errand.token);
  if (move.token == Which::stale && last_token_ != 0) body += fmt::format(R"(,"token":{})", last_token_);
  if (move.how != How::success) body += R"(,"error":"simulated")";
  if (move.how == How::for_good) body += R"(,"permanent":true)";
  if (move.keep.count() >= 0) body += fmt::format(R"(,"keep_ms":{})", to_ms(move.keep));
  // Like no other, so that whoever is told it can be asked whose it is.
  if (move.result) body += fmt::format(R"(,"result":"{} #{}")", node_, ++last_result_);
  return body + "}";
}

void Actor::make(const Move& move) {
  const std::string query = fmt::format("?type={}&resource_id={}", move.type, move.resource);
  Errand* const errand = latest(move);
  const std::string who = errand == nullptr ? fmt::format("&node_id={}", node_)
                          : errand->request.empty()
                              ? fmt::format("&node_id={}", node_)
                              : fmt::format("&node_id={}&request_id={}", node_, errand->request);
  const std::string node_and_resource =
      fmt::format(R"({{"resource_id":"{}","node_id":"{}"}})", move.resource, node_);
  switch (move.kind) {
    case MoveKind::lock: {
      Errand& wanted = errand_for(move);
      return send({.target = "/lock", .body = lock_body(move, wanted)}, {&wanted});
    }
    case MoveKind::unlock:
      if (errand != nullptr) send({.target = "/unlock", .body = unlock_body(move, *errand)}, {errand});
      return;
    case MoveKind::renew: {
      if (errand == nullptr || errand->token == 0) return;
      std::string body = "{" + who_and_lane(*errand);
      body += fmt::format(R"(,"token":{})",
                          move.token == Which::stale && last_token_ != 0 ? last_token_ : errand->token);
      if (move.lease.count() > 0) body += fmt::format(R"(,"lease_ms":{})", to_ms(move.lease));
      if (move.progress) body += fmt::format(R"(,"done":{},"total":100)", schedule_.random.below(4));
      return send({.target = "/renew", .body = body + "}"}, {errand});
    }
    case MoveKind::cancel:
      if (errand != nullptr) send({.target = "/cancel", .body = "{" + who_and_lane(*errand) + "}"}, {errand});
      return;
    case MoveKind::status:
      return send({.post = false, .target = "/lock/status" + query + (move.named ? who : "")},
                  {move.named ? errand : nullptr});
    case MoveKind::break_hold:
      return send({.target = "/admin/break",
                   .body = fmt::format(R"({{"type":"{}","resource_id":"{}","reason":"simulated"}})",
                                       move.type, move.resource)},
                  {});
    case MoveKind::forget:
      return send({.target = "/admin/forget",
                   .body = fmt::format(R"({{"type":"{}","resource_id":"{}"}})", move.type, move.resource)},
                  {});
    case MoveKind::references:
      return send({.post = false, .target = "/refs?resource_id=" + move.resource}, {});
    case MoveKind::add_reference:
      return send({.target = "/refs/add", .body = node_and_resource}, {});
    case MoveKind::release_reference:
      return send({.target = "/refs/release", .body = node_and_resource}, {});
    case MoveKind::release_node:
      return send({.target = "/refs/release_node", .body = fmt::format(R"({{"node_id":"{}"}})", node_)}, {});
    case MoveKind::batch: {
      std::string body;
      std::vector<Errand*> wanted;
      if (move.reset) {
        body += R"({"call":"refs/add",)" + node_and_resource.substr(1) + ",";
        wanted.push_back(nullptr);
      }
      if (errand != nullptr && errand->token != 0) {
        body += R"({"call":"unlock",)" + unlock_body(move, *errand).substr(1) + ",";
        wanted.push_back(errand);
      }
      Move other = move;
      other.again = false;
      other.named = true;
      wanted.push_back(&errand_for(other));
      body += R"({"call":"lock",)" + lock_body(other, *wanted.back()).substr(1);
      if (move.progress) body += R"(,{"call":"sing"})";  // refused, so that it waits for nothing
      return send({.target = "/batch", .body = R"({"requests":[)" + body + "]}"}, std::move(wanted));
    }
    case MoveKind::list:
      return send({.post = false, .target = "/locks"}, {});
    case MoveKind::subscribe:
      return open_stream("/lock/subscribe" + query + (move.monitor ? who : ""), move.reset);
    case MoveKind::close:
      for (auto each = connections_.rbegin(); each != connections_.rend(); ++each) {
        if (!(*each)->open) continue;
        (*each)->open = false;
        return close_by_client((*each)->link, move.reset);
      }
      return;
    case MoveKind::stop_reading:
      for (const auto& stream : streams_)
        if (stream->link) set_reading(stream->link, false);
      return;
    case MoveKind::go_on_reading:
      return read_again();
    default:
      return;
  }
}

void Actor::open_stream(const std::string& target, bool comes_back) {
  streams_.push_back(std::make_unique<Stream>(*this, target, comes_back));
  streams_.back()->open();
}

void Actor::watch_everything() { open_stream("/events", true); }

void Actor::read_again() {
  for (const auto& stream : streams_)
    if (stream->link) set_reading(stream->link, true);
}

void Actor::leave() {
  left_ = true;
  read_again();
  for (Errand& errand : errands_) {
    if (errand.token != 0)
      send({.target = "/unlock", .body = unlock_body({.how = How::failure}, errand)}, {&errand});
    send({.target = "/cancel", .body = "{" + who_and_lane(errand) + "}"}, {&errand});
  }
}

void Actor::hang_up() {
  for (const auto& connection : connections_)
    if (std::exchange(connection->open, false)) close_by_client(connection->link, false);
  for (const auto& stream : streams_) {
    if (stream->is_of_everything()) continue;
    stream->end();
    if (stream->link) close_by_client(stream->link, false);
  }
}

void Actor::stop_watching() {
  for (const auto& stream : streams_) {
    stream->end();
    if (stream->link) close_by_client(stream->link, false);
  }
}

size_t Actor::unanswered() const {
  size_t count = 0;
  for (const auto& connection : connections_)
    if (connection->open) count += connection->under_way.size();
  return count;
}

}  // namespace turnstile::sim
