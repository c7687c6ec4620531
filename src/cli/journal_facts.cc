#include "cli/journal_facts.h"

#include <algorithm>

namespace turnstile::cli {
namespace {

std::string lane_key(const Record& record) {
  std::string key(record.lane.operation.text);
  key += '\0';
  key += record.lane.resource.text;
  return key;
}

std::string reference_key(const Record& record) {
  std::string key(record.lane.resource.text);
  key += '\0';
  key += record.who.node.text;
  return key;
}

}  // namespace

std::string_view name_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::hold_set:
      return "hold_set";
    case RecordKind::hold_erased:
      return "hold_erased";
    case RecordKind::waiter_set:
      return "waiter_set";
    case RecordKind::waiter_erased:
      return "waiter_erased";
    case RecordKind::failures_set:
      return "failures_set";
    case RecordKind::failures_erased:
      return "failures_erased";
    case RecordKind::completion_set:
      return "completion_set";
    case RecordKind::completion_erased:
      return "completion_erased";
    case RecordKind::released_set:
      return "released_set";
    case RecordKind::ending_set:
      return "ending_set";
    case RecordKind::ending_erased:
      return "ending_erased";
    case RecordKind::reference_set:
      return "reference_set";
    case RecordKind::reference_erased:
      return "reference_erased";
    case RecordKind::token_mark:
      return "token_mark";
    case RecordKind::queue_ended:
      return "queue_ended";
    case RecordKind::endings_voided:
      return "endings_voided";
    case RecordKind::event_mark:
      return "event_mark";
    case RecordKind::life_mark:
      return "life_mark";
  }
  return "unknown";
}

void JournalFacts::apply(const Record& record) {
  ++kinds_[record.kind];
  switch (record.kind) {
    case RecordKind::hold_set:
      holds_.insert(lane_key(record));
      highest_token_ = std::max(highest_token_, record.number);
      break;
    case RecordKind::hold_erased:
      holds_.erase(lane_key(record));
      break;
    case RecordKind::waiter_set:
      waiters_[lane_key(record)].insert(record.number);
      break;
    case RecordKind::waiter_erased:
      if (const auto lane = waiters_.find(lane_key(record)); lane != waiters_.end()) {
        lane->second.erase(record.number);
        if (lane->second.empty()) waiters_.erase(lane);
      }
      break;
    case RecordKind::queue_ended:
      if (const auto lane = waiters_.find(lane_key(record)); lane != waiters_.end()) {
        lane->second.erase(lane->second.begin(), lane->second.upper_bound(record.number));
        if (lane->second.empty()) waiters_.erase(lane);
      }
      break;
    case RecordKind::failures_set:
      failures_.insert(lane_key(record));
      break;
    case RecordKind::failures_erased:
      failures_.erase(lane_key(record));
      break;
    case RecordKind::completion_set:
      completions_.insert(lane_key(record));
      break;
    case RecordKind::completion_erased:
      completions_.erase(lane_key(record));
      break;
    case RecordKind::reference_set:
      references_.insert(reference_key(record));
      break;
    case RecordKind::reference_erased:
      references_.erase(reference_key(record));
      break;
    case RecordKind::token_mark:
      highest_token_ = std::max(highest_token_, record.number);
      break;
    case RecordKind::event_mark:
    case RecordKind::life_mark:
      latest_event_ = std::max(latest_event_, record.number);
      break;
    case RecordKind::released_set:
    case RecordKind::ending_set:
    case RecordKind::ending_erased:
    case RecordKind::endings_voided:
      break;  // of short memory, and not what anybody counts
  }
}

std::vector<std::pair<std::string, uint64_t>> JournalFacts::counts() const {
  uint64_t waiters = 0;
  for (const auto& [lane, tickets] : waiters_) waiters += tickets.size();
  return {{"holds", holds_.size()},
          {"waiters", waiters},
          {"completions", completions_.size()},
          {"failed_lanes", failures_.size()},
          {"references", references_.size()},
          {"highest_token", highest_token_},
          {"latest_event", latest_event_}};
}

std::vector<std::pair<std::string, uint64_t>> JournalFacts::by_kind() const {
  std::vector<std::pair<std::string, uint64_t>> out;
  for (const auto& [kind, count] : kinds_) out.emplace_back(name_of(kind), count);
  return out;
}

}  // namespace turnstile::cli
