// The engine's answers as JSON bodies, and the HTTP status that goes with each.
//
// Every function appends one JSON object to `out`, which the caller reuses, and returns its status. In a
// batch the object says its status itself, as its first field.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "api/error.h"
#include "engine/answer.h"

namespace turnstile {

// `asked`: the lane of the command, because a holder in the way may hold another one.
unsigned append_lock_answer(std::string& out, const LockAnswer& answer, const LaneName& asked,
                            AnswerForm form = AnswerForm::alone);
unsigned append_unlock_answer(std::string& out, const UnlockAnswer& answer,
                              AnswerForm form = AnswerForm::alone);
unsigned append_renew_answer(std::string& out, const RenewAnswer& answer,
                             AnswerForm form = AnswerForm::alone);
unsigned append_cancel_answer(std::string& out, const CancelAnswer& answer,
                              AnswerForm form = AnswerForm::alone);
unsigned append_break_answer(std::string& out, const BreakAnswer& answer);
unsigned append_forget_answer(std::string& out, const ForgetAnswer& answer);

unsigned append_status_answer(std::string& out, const StatusAnswer& answer);
// One page of GET /locks. `next`: the lane after which the next page begins, if there may be one. `matched`:
// how many lanes match, if that was asked for.
unsigned append_list_answer(std::string& out, std::span<const StatusAnswer> page,
                            const std::optional<LaneName>& next, std::optional<uint64_t> matched = {});

unsigned append_references_answer(std::string& out, const ReferencesAnswer& answer, ResourceId resource);
// For /refs/add and /refs/release: also whether anything changed. In a batch without the nodes, which could
// be 100 for each of a thousand.
unsigned append_reference_change(std::string& out, const ReferencesAnswer& answer, ResourceId resource,
                                 AnswerForm form = AnswerForm::alone);
unsigned append_release_node_answer(std::string& out, const ReferencesAnswer& answer, NodeId node);

// The frame of a batch's answers. Before each answer comes next_answer().
//
//   BatchFrame frame(out);
//   for (...) { frame.next_answer(); append_lock_answer(out, answer, lane, AnswerForm::in_batch); }
//   frame.finish();
class BatchFrame {
 public:
  explicit BatchFrame(std::string& out) : out_(out) { out_.append(R"({"answers":[)"); }
  void next_answer() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void finish() { out_.append("]}"); }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace turnstile
