#include "rules.h"

#include <map>

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

Reply reply_of(const LockAnswer& answer) {
  Reply reply;
  reply.token = uint64_t(answer.token);
  reply.attempt = answer.attempt;
  reply.previous_error = answer.previous_error;
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
    case LockState::cancelled:
      reply.kind = Reply::Kind::cancelled;
      break;
    default:
      reply.reason = answer.refusal == Refusal::referenced ? "referenced" : "busy";
  }
  return reply;
}

}  // namespace

struct ServerRules::Inside {
  NoSink sink;
  Engine engine{EngineSettings{}, sink, Token(1)};
  std::map<uint64_t, Reply> wakes;  // answers to long polls that nobody has taken yet

  // Of one step: whose wait has ended is answered.
  class Step : public Effects {
   public:
    explicit Step(Inside& inside) : inside_(inside) {}
    ~Step() { inside_.deliver(*this); }

   private:
    Inside& inside_;
  };
  void deliver(Effects& effects) {
    for (const Wake& wake : effects.wakes) wakes[uint64_t(wake.poll)] = reply_of(wake.answer);
    effects.wakes.clear();
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
  command.poll = PollId(question.poll);
  Inside::Step step(*inside_);
  return reply_of(inside_->engine.lock(command, now, step));
}

std::optional<Reply> ServerRules::take_wake(uint64_t poll) {
  const auto found = inside_->wakes.find(poll);
  if (found == inside_->wakes.end()) return std::nullopt;
  Reply reply = std::move(found->second);
  inside_->wakes.erase(found);
  return reply;
}

void ServerRules::break_poll(const Question& question, Time now) {
  if (question.poll == 0) return;
  Inside::Step step(*inside_);
  inside_->engine.break_poll(lane_of(question), who_of(question), PollId(question.poll), now, step);
  inside_->wakes.erase(question.poll);
}

void ServerRules::cancel(const Question& question, Time now) {
  Inside::Step step(*inside_);
  inside_->engine.cancel({lane_of(question), who_of(question)}, now, step);
}

bool ServerRules::renew(const Question& question, uint64_t token, Time now) {
  RenewCommand command;
  command.lane = lane_of(question);
  command.who = who_of(question);
  command.token = Token(token);
  Inside::Step step(*inside_);
  return inside_->engine.renew(command, now, step).refusal == Refusal::none;
}

bool ServerRules::unlock(const Question& question, uint64_t token, const WorkEnd& end, Time now) {
  UnlockCommand command;
  command.lane = lane_of(question);
  command.who = who_of(question);
  command.token = Token(token);
  command.success = end.success;
  command.error = end.error;
  command.keep = end.keep;
  Inside::Step step(*inside_);
  return inside_->engine.unlock(command, now, step).refusal == Refusal::none;
}

bool ServerRules::add_reference(const std::string& resource, const std::string& node, Time now) {
  Inside::Step step(*inside_);
  return inside_->engine.add_reference({ResourceId(resource), NodeId(node)}, now, step).refusal ==
         Refusal::none;
}

uint32_t ServerRules::release_reference(const std::string& resource, const std::string& node, Time now) {
  Inside::Step step(*inside_);
  return inside_->engine.release_reference({ResourceId(resource), NodeId(node)}, now, step).count;
}

void ServerRules::release_node(const std::string& node, Time now) {
  Inside::Step step(*inside_);
  ReleaseNodeWalk walk{NodeId(node)};
  while (!inside_->engine.release_node_some(walk, 1000, now, step,
                                            [&](Effects& effects) { inside_->deliver(effects); })) {
  }
}

std::vector<std::string> ServerRules::references(const std::string& resource) {
  Inside::Step step(*inside_);
  std::vector<std::string> all;
  for (const std::string_view node :
       inside_->engine.references({ResourceId(resource), NodeId(), 100}, step).nodes)
    all.emplace_back(node);
  return all;
}

std::vector<std::string> ServerRules::waiters(const std::string& resource, Time now) {
  Inside::Step step(*inside_);
  const StatusAnswer status =
      inside_->engine.status({{OperationName("delete"), ResourceId(resource)}, {}}, now, step);
  return texts_of(status.waiters);
}

bool ServerRules::is_done(const std::string& operation, const std::string& resource, Time now) {
  Inside::Step step(*inside_);
  const StatusAnswer status =
      inside_->engine.status({{OperationName(operation), ResourceId(resource)}, {}}, now, step);
  return status.completion && status.completion->success;
}

void ServerRules::expire(Time now) {
  Inside::Step step(*inside_);
  while (inside_->engine.expire(now, step, 1000, [&](Effects& effects) { inside_->deliver(effects); }) > 0) {
  }
}

void ServerRules::begin_again(Time now) { inside_->engine.restart_times(now); }

}  // namespace turnstile::lives
