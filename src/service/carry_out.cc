#include "service/carry_out.h"

#include "api/answer_writer.h"
#include "base/check.h"
#include "base/log.h"

namespace turnstile {
namespace {

// One overload for each command: ask the engine, write.
struct Step {
  Engine& engine;
  const Time now;
  Effects& effects;
  std::string& body;
  const AnswerForm form;

  CarriedOut operator()(const LockRequest& request) {
    const LockCommand& command = request.command;
    const LockAnswer answer = engine.lock(command, now, effects);
    CarriedOut done{.bonded = answer.bonded};
    done.waits = answer.state == LockState::queued && command.poll != PollId::none;
    if (!done.waits) done.status = append_lock_answer(body, answer, command.lane, form);
    return done;
  }
  CarriedOut operator()(const UnlockCommand& command) {
    const UnlockAnswer answer = engine.unlock(command, now, effects);
    return {.status = append_unlock_answer(body, answer, form), .freed = answer.refusal == Refusal::none};
  }
  CarriedOut operator()(const RenewCommand& command) {
    return {.status = append_renew_answer(body, engine.renew(command, now, effects), form)};
  }
  CarriedOut operator()(const CancelCommand& command) {
    return {.status = append_cancel_answer(body, engine.cancel(command, now, effects), form)};
  }
  CarriedOut operator()(const StatusCommand& command) {
    return {.status = append_status_answer(body, engine.status(command, now, effects))};
  }
  CarriedOut operator()(const BreakCommand& command) {
    const BreakAnswer answer = engine.break_hold(command, now, effects);
    const unsigned status = append_break_answer(body, answer);
    log_info("break", {{"type", command.lane.operation.text},
                       {"resource_id", command.lane.resource.text},
                       {"reason", command.reason},
                       {"node_id", answer.node.text},
                       {"status", status}});
    return {.status = status};
  }
  CarriedOut operator()(const ForgetCommand& command) {
    const ForgetAnswer answer = engine.forget(command, now, effects);
    log_info("forget", {{"type", command.lane.operation.text},
                        {"resource_id", command.lane.resource.text},
                        {"forgotten", answer.forgotten}});
    return {.status = append_forget_answer(body, answer)};
  }
  CarriedOut operator()(const ReferencesCommand& command) {
    const ReferencesAnswer answer = engine.references(command, effects);
    return {.status = append_references_answer(body, answer, command.resource)};
  }
  CarriedOut operator()(const AddReferenceCommand& command) {
    const ReferencesAnswer answer = engine.add_reference(command, now, effects);
    return {.status = append_reference_change(body, answer, command.resource, form)};
  }
  CarriedOut operator()(const ReleaseReferenceCommand& command) {
    const ReferencesAnswer answer = engine.release_reference(command, now, effects);
    return {.status = append_reference_change(body, answer, command.resource, form)};
  }
  template <class Other>
  CarriedOut operator()(const Other&) {
    TS_CHECK(false, "walks, streams and batches are not one step");
    return {};
  }
};

void log_decision(std::string_view call, const LaneName& lane, const Requester& who,
                  std::string_view answer) {
  log_line(LogLevel::debug, call,
           {{"type", lane.operation.text},
            {"resource_id", lane.resource.text},
            {"node_id", who.node.text},
            {"request_id", who.request.text},
            {"answer", answer}});
}

void log_decision(const Command& command, std::string_view answer) {
  if (const auto* lock = std::get_if<LockRequest>(&command))
    log_decision("lock", lock->command.lane, lock->command.who, answer);
  else if (const auto* unlock = std::get_if<UnlockCommand>(&command))
    log_decision("unlock", unlock->lane, unlock->who, answer);
  else if (const auto* renew = std::get_if<RenewCommand>(&command))
    log_decision("renew", renew->lane, renew->who, answer);
  else if (const auto* cancel = std::get_if<CancelCommand>(&command))
    log_decision("cancel", cancel->lane, cancel->who, answer);
}

}  // namespace

CarriedOut carry_out(Engine& engine, const Command& command, Time now, Effects& effects, std::string& body,
                     AnswerForm form) {
  const size_t before = body.size();
  const CarriedOut done = std::visit(Step{engine, now, effects, body, form}, command);
  if (log_enabled(LogLevel::debug)) log_decision(command, std::string_view(body).substr(before));
  return done;
}

}  // namespace turnstile
