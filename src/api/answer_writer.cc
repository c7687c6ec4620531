#include "api/answer_writer.h"

#include "api/json_append.h"
#include "api/status_json.h"

namespace turnstile {
namespace {

// {"released":false,"code":"...","message":"...","error":"..."}; `outcome` is what was not done.
unsigned append_refusal(std::string& out, std::string_view outcome, Refusal refusal, AnswerForm form) {
  const ErrorRow& row = error_row(error_of(refusal));
  begin_object(out, form, row.status);
  out.append(outcome);
  append_text_field(out, R"("code":)", row.code);
  append_text_field(out, R"(,"message":)", message_of(refusal));
  append_text_field(out, R"(,"error":)", message_of(refusal));
  out += '}';
  return row.status;
}

// The first fields of a /lock answer, which depend on its state alone.
std::string_view opening(const LockAnswer& answer) {
  switch (answer.state) {
    case LockState::acquired:
      return R"("acquired":true,"skip":false,"state":"acquired","message":"the lock is yours: unlock it when done")";
    case LockState::queued:
      return R"("acquired":false,"skip":false,"state":"queued","message":"others are before you: wait for your turn")";
    case LockState::skipped:
      if (!answer.references.empty())
        return R"("acquired":false,"skip":true,"state":"skipped",)"
               R"("message":"your reference is dropped and other nodes still use the resource: skip")";
      return R"("acquired":false,"skip":true,"state":"skipped","message":"the work is done already: skip it")";
    case LockState::cancelled:
      return R"("acquired":false,"skip":false,"state":"cancelled","message":"the wait was cancelled")";
    case LockState::refused:
      return R"("acquired":false,"skip":false,"state":"refused")";
    case LockState::failed:
      return R"("acquired":false,"skip":false,"state":"failed")";
  }
  return {};
}

unsigned append_refused_lock(std::string& out, const LockAnswer& answer, const LaneName& asked,
                             AnswerForm form) {
  const Refusal why =
      answer.refusal == Refusal::none && answer.state == LockState::failed ? Refusal::failed : answer.refusal;
  const ErrorRow& row = error_row(error_of(why));
  const std::string_view message = answer.error.empty() ? message_of(why) : answer.error;
  begin_object(out, form, row.status);
  out.append(opening(answer));
  append_text_field(out, R"(,"error":)", message);
  append_text_field(out, R"(,"code":)", row.code);
  append_text_field(out, R"(,"message":)", message);
  if (answer.holder) append_holder_field(out, R"(,"holder":)", *answer.holder, asked.operation);
  if (!answer.references.empty()) append_nodes_field(out, R"(,"references":)", answer.references);
  out += '}';
  return row.status;
}

}  // namespace

unsigned append_lock_answer(std::string& out, const LockAnswer& answer, const LaneName& asked,
                            AnswerForm form) {
  if (answer.state == LockState::refused || answer.state == LockState::failed)
    return append_refused_lock(out, answer, asked, form);
  begin_object(out, form, 200);
  out.append(opening(answer));
  if (answer.state == LockState::acquired) {
    append_number_field(out, R"(,"token":)", uint64_t(answer.token));
    append_number_field(out, R"(,"attempt":)", answer.attempt);
    if (!answer.previous_error.empty())
      append_text_field(out, R"(,"previous_error":)", answer.previous_error);
  } else if (answer.state == LockState::queued) {
    append_number_field(out, R"(,"position":)", answer.position);
    if (answer.holder) append_holder_field(out, R"(,"holder":)", *answer.holder, asked.operation);
  }
  if (answer.done) append_done_fields(out, *answer.done);
  if (!answer.references.empty()) append_nodes_field(out, R"(,"references":)", answer.references);
  out += '}';
  return 200;
}

unsigned append_unlock_answer(std::string& out, const UnlockAnswer& answer, AnswerForm form) {
  if (answer.refusal != Refusal::none)
    return append_refusal(out, R"("released":false,)", answer.refusal, form);
  begin_object(out, form, 200);
  out.append(answer.already ? R"("released":true,"message":"this hold was released before: nothing changed")"
                            : R"("released":true,"message":"the lock is released")");
  if (!answer.next.empty()) append_text_field(out, R"(,"next":)", answer.next.text);
  append_waiters_field(out, answer.waiters);
  if (answer.already) out.append(R"(,"already":true)");
  if (answer.keep) append_number_field(out, R"(,"keep_ms":)", uint64_t(to_ms(*answer.keep)));
  if (answer.result_dropped) out.append(R"(,"result_kept":false)");
  out += '}';
  return 200;
}

unsigned append_renew_answer(std::string& out, const RenewAnswer& answer, AnswerForm form) {
  if (answer.refusal != Refusal::none)
    return append_refusal(out, R"("renewed":false,)", answer.refusal, form);
  begin_object(out, form, 200);
  append_number_field(out, R"("renewed":true,"lease_ms":)", uint64_t(to_ms(answer.lease)));
  out += '}';
  return 200;
}

unsigned append_cancel_answer(std::string& out, const CancelAnswer& answer, AnswerForm form) {
  begin_object(out, form, 200);
  append_bool_field(out, R"("cancelled":)", answer.cancelled);
  out += '}';
  return 200;
}

unsigned append_break_answer(std::string& out, const BreakAnswer& answer) {
  if (answer.refusal != Refusal::none)
    return append_refusal(out, R"("broken":false,)", answer.refusal, AnswerForm::alone);
  append_text_field(out, R"({"broken":true,"node_id":)", answer.node.text);
  out += '}';
  return 200;
}

unsigned append_forget_answer(std::string& out, const ForgetAnswer& answer) {
  append_bool_field(out, R"({"forgotten":)", answer.forgotten);
  out += '}';
  return 200;
}

unsigned append_references_answer(std::string& out, const ReferencesAnswer& answer, ResourceId resource) {
  if (answer.refusal != Refusal::none) return append_refusal(out, {}, answer.refusal, AnswerForm::alone);
  append_text_field(out, R"({"resource_id":)", resource.text);
  append_number_field(out, R"(,"count":)", answer.count);
  append_texts_field(out, R"(,"nodes":)", answer.nodes);
  if (answer.more) append_text_field(out, R"(,"next":)", answer.nodes.back());
  out += '}';
  return 200;
}

unsigned append_reference_change(std::string& out, const ReferencesAnswer& answer, ResourceId resource,
                                 AnswerForm form) {
  if (answer.refusal != Refusal::none)
    return append_refusal(out, R"("changed":false,)", answer.refusal, form);
  if (form == AnswerForm::in_batch) {
    begin_object(out, form, 200);
    append_text_field(out, R"("resource_id":)", resource.text);
    append_number_field(out, R"(,"count":)", answer.count);
    out += ',';
  } else {
    append_references_answer(out, answer, resource);
    out.back() = ',';
  }
  append_bool_field(out, R"("changed":)", answer.changed);
  out += '}';
  return 200;
}

unsigned append_release_node_answer(std::string& out, const ReferencesAnswer& answer, NodeId node) {
  if (answer.refusal != Refusal::none)
    return append_refusal(out, R"("changed":false,)", answer.refusal, AnswerForm::alone);
  append_text_field(out, R"({"node_id":)", node.text);
  append_bool_field(out, R"(,"changed":)", answer.changed);
  append_number_field(out, R"(,"count":)", answer.count);
  out += '}';
  return 200;
}

}  // namespace turnstile
