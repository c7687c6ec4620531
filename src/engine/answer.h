// What the engine answers. Texts are views into the Effects that the call was given: use them before its next
// call.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/command.h"
#include "engine/types.h"

namespace turnstile {

// Why a call was refused. The api folder turns each into a code and a status.
enum class Refusal : uint8_t {
  none,
  busy,        // S3 with allow_multi_node_download=false; S19 for /refs/add
  referenced,  // S5
  failed,      // S4: a kept permanent failure
  queue_full,
  not_held,  // S8
  not_holder,
  stale_token,
  references_off,       // S18
  too_many_operations,  // see Operations::kMostNames
  too_many_resources,   // EngineSettings::max_resources, and so on
  too_many_references,
  too_many_waiters,
};

struct HolderView {
  OperationName operation;
  Requester who;
  Token token = Token::none;
  Time since;
  Duration lease{};  // 0: none
  std::optional<Progress> progress;
  std::string_view info;
};

// The first of perhaps many nodes.
struct NodesView {
  uint32_t count = 0;                       // of all of them
  std::span<const std::string_view> nodes;  // at most kMostNamed

  bool empty() const { return count == 0; }
};

// By whom the work was done that need not be done again, how long ago, and what it left (S39).
struct DoneView {
  NodeId node;
  Duration ago{};
  std::string_view result;
};

enum class LockState : uint8_t { acquired, queued, skipped, refused, failed, cancelled };

struct LockAnswer {
  LockState state = LockState::refused;
  Refusal refusal = Refusal::none;   // with refused and failed
  Token token = Token::none;         // with acquired
  uint32_t attempt = 0;              // with acquired, from 1
  std::string_view previous_error;   // with acquired, attempt > 1
  uint32_t position = 0;             // with queued, from 1
  std::optional<HolderView> holder;  // with queued and busy: who is in the way, if it is a hold
  std::string_view error;            // with failed: the kept error
  NodesView references;              // with referenced, or a skipped delete: the nodes in the way
  std::optional<DoneView> done;      // with skipped, if a completion is the reason
  bool bonded = false;  // the connection is now a bond (S21); the server must tell when it breaks
};

struct UnlockAnswer {
  Refusal refusal = Refusal::none;
  bool already = false;          // S15
  NodeId next;                   // the node that was granted this lane in the same step
  NodesView waiters;             // S16: nodes waiting on the resource just before
  std::optional<Duration> keep;  // S38, if it was asked for: how long the success counts
  bool result_dropped = false;   // S39: there was no room for it
};

struct RenewAnswer {
  Refusal refusal = Refusal::none;
  Duration lease{};
};

struct CancelAnswer {
  bool cancelled = false;
};

struct BreakAnswer {
  Refusal refusal = Refusal::none;
  NodeId node;
};

struct ForgetAnswer {
  bool forgotten = false;  // there was a completion to forget
};

struct QueueView {
  Requester who;
  uint32_t position = 0;
  Time since;
  std::string_view info;
};

struct CompletionView {
  NodeId node;
  bool success = false;
  bool permanent = false;
  std::string_view error;
  Time at;
  std::string_view result{};
};

struct StatusAnswer {
  LaneName lane;
  LaneState state = LaneState::idle;
  std::optional<HolderView> holder;
  std::vector<QueueView> queue;  // the front of it, at most kMostNamed
  uint32_t queue_length = 0;
  std::optional<CompletionView> completion;
  NodesView references;
  NodesView waiters;  // nodes waiting anywhere on the resource

  // For the asking requester; without one, `completed` speaks of the lane's kept completion.
  bool acquired = false;
  Token token = Token::none;  // with acquired
  uint32_t attempt = 0;       // with acquired
  uint32_t position = 0;      // while it waits
  bool completed = false;
  bool success = false;
  std::string_view error;
  std::optional<DoneView> done;  // with success
};

struct ListAnswer {
  std::vector<StatusAnswer> page;
  bool more = false;  // ask again after `next`; the page may be short, or empty, and more follow
  LaneName next;
  std::optional<uint64_t> matched;  // if that was asked for
};

struct ReferencesAnswer {
  Refusal refusal = Refusal::none;
  bool changed = false;
  uint32_t count = 0;  // of all; release_node: how many were released
  std::span<const std::string_view> nodes;
  bool more = false;  // ask again after the last of them
};

}  // namespace turnstile
