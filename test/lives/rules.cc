#include "rules.h"

#include "engine/engine.h"

namespace turnstile::lives {
namespace {

struct NoSink final : CommitSink {
  uint64_t commit(Effects&) override { return 0; }
  uint64_t latest() const override { return 0; }
  bool wants_records() const override { return false; }
};

LaneName lane_of(const Question& question) {
  return {OperationName(question.operation), ResourceId(question.resource)};
}
Requester who_of(const Question& question) { return {NodeId(question.node), RequestId(question.request)}; }

template <class Nodes>
std::vector<std::string> texts_of(const Nodes& nodes) {
  std::vector<std::string> all;
  for (const auto& node : nodes.nodes) all.emplace_back(node);
  return all;
}

}  // namespace

struct ServerRules::Inside {
  NoSink sink;
  Engine engine{EngineSettings{}, sink, Token(1)};
  Effects effects;

  Effects& fresh() {
    effects.clear();
    return effects;
  }
};

ServerRules::ServerRules() : inside_(std::make_unique<Inside>()) {}
ServerRules::~ServerRules() = default;

Reply ServerRules::lock(const Question& question, Time now) {
  LockCommand command;
  command.lane = lane_of(question);
  command.who = who_of(question);
  command.scope = Scope::resource;
  command.lease = std::chrono::milliseconds(question.lease_ms);
  command.dereference = question.dereference;
  const LockAnswer answer = inside_->engine.lock(command, now, inside_->fresh());
  Reply reply;
  reply.token = uint64_t(answer.token);
  reply.attempt = answer.attempt;
  reply.previous_error = answer.previous_error;
  reply.references = texts_of(answer.references);
  switch (answer.state) {
    case LockState::acquired:
      reply.kind = Reply::Kind::granted;
      break;
    case LockState::skipped:
      reply.kind = Reply::Kind::skipped;
      break;
    case LockState::queued:
      reply.kind = Reply::Kind::queued;
      break;
    default:
      reply.reason = "busy";
  }
  return reply;
}

void ServerRules::cancel(const Question& question, Time now) {
  inside_->engine.cancel({lane_of(question), who_of(question)}, now, inside_->fresh());
}

bool ServerRules::renew(const Question& question, uint64_t token, Time now) {
  RenewCommand command;
  command.lane = lane_of(question);
  command.who = who_of(question);
  command.token = Token(token);
  return inside_->engine.renew(command, now, inside_->fresh()).refusal == Refusal::none;
}

bool ServerRules::unlock(const Question& question, uint64_t token, bool success, const std::string& error,
                         Time now) {
  UnlockCommand command;
  command.lane = lane_of(question);
  command.who = who_of(question);
  command.token = Token(token);
  command.success = success;
  command.error = error;
  return inside_->engine.unlock(command, now, inside_->fresh()).refusal == Refusal::none;
}

bool ServerRules::add_reference(const std::string& resource, const std::string& node, Time now) {
  return inside_->engine.add_reference({ResourceId(resource), NodeId(node)}, now, inside_->fresh()).refusal ==
         Refusal::none;
}

void ServerRules::release_node(const std::string& node, Time now) {
  ReleaseNodeWalk walk{NodeId(node)};
  while (!inside_->engine.release_node_some(walk, 1000, now, inside_->fresh(), [](Effects&) {})) {
  }
}

std::vector<std::string> ServerRules::references(const std::string& resource) {
  std::vector<std::string> all;
  for (const std::string_view node :
       inside_->engine.references({ResourceId(resource), NodeId(), 100}, inside_->fresh()).nodes)
    all.emplace_back(node);
  return all;
}

std::vector<std::string> ServerRules::waiters(const std::string& resource, Time now) {
  const StatusAnswer status =
      inside_->engine.status({{OperationName("delete"), ResourceId(resource)}, {}}, now, inside_->fresh());
  return texts_of(status.waiters);
}

bool ServerRules::is_done(const std::string& operation, const std::string& resource, Time now) {
  const StatusAnswer status =
      inside_->engine.status({{OperationName(operation), ResourceId(resource)}, {}}, now, inside_->fresh());
  return status.completion && status.completion->success;
}

void ServerRules::expire(Time now) {
  while (inside_->engine.expire(now, inside_->fresh(), 1000, [](Effects&) {}) > 0) {
  }
}

void ServerRules::begin_again(Time now) { inside_->engine.restart_times(now); }

}  // namespace turnstile::lives
