// What can be seen of a lane, of references and of the event stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "turnstile/clock.h"

namespace turnstile {
inline namespace v1 {

struct HolderStatus {
  std::string node_id{}, request_id{};
  uint64_t token = 0;
  WallTime since{};
  std::chrono::milliseconds lease{0};  // 0: none
  std::optional<uint64_t> done{}, total{};
  std::string info{};
};

struct WaiterStatus {
  std::string node_id{}, request_id{};
  uint32_t position = 0;
  WallTime since{};
  std::string info{};
};

struct CompletionStatus {
  std::string node_id{};
  bool success = false;
  std::string error{};
  bool permanent = false;
  WallTime completed_at{};
  std::string result{};  // of a success: what its holder said
};

struct LaneStatus {
  std::string operation{}, resource{};
  std::string state{};  // idle, held, waiting, completed
  std::optional<HolderStatus> holder{};
  std::vector<WaiterStatus> queue{};  // the front of it
  uint32_t queue_length = 0;
  std::optional<CompletionStatus> completion{};
  std::vector<std::string> references{};  // the first nodes that use the resource
  uint32_t reference_count = 0;           // how many nodes do
  std::vector<std::string> waiters{};     // the first nodes that wait anywhere on the resource
};

struct LanePage {
  std::vector<LaneStatus> lanes{};
  std::string next_cursor{};  // empty: this was the last page
};

struct LaneFilter {
  std::string prefix{}, operation{}, state{};
  uint32_t limit = 100;
  std::string cursor{};
};

struct ReferenceStatus {
  std::string resource{};
  uint32_t count = 0;
  std::vector<std::string> nodes{};  // the first of them
  bool changed = false;
};

struct Event {
  std::string id{};  // increases over the whole server and over restarts
  std::string
      event{};  // granted, completed, failed, expired, broken, cancelled, refused; reset: some were missed
  std::string operation{}, resource{}, node_id{}, request_id{};
  bool success = false;
  std::string error{}, reason{};
  bool permanent = false;
  WallTime completed_at{};  // the time of the event
  uint64_t token = 0;
  uint32_t attempt = 0;
  std::string result{};  // with completed: what its holder said
};

}  // namespace v1
}  // namespace turnstile
