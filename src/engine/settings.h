// What a user can set about the rules. Plain data: defaults are those of docs/semantics.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/types.h"

namespace turnstile {

enum class OnSuccess : uint8_t { share, handoff };
enum class OnReferences : uint8_t { add, keep, clear };
enum class Guard : uint8_t { none, skip, refuse };

// The rules of one operation (semantics.md section 4). A name without rules of its own is a plain mutex.
struct OperationRules {
  std::string name;
  OnSuccess on_success = OnSuccess::handoff;
  OnReferences references = OnReferences::keep;
  Guard guard = Guard::none;  // what references on the resource mean for a request
  bool voids = false;         // its success voids the kept completions of the resource's other lanes
};

inline std::vector<OperationRules> default_operations(bool update_requires_no_ref) {
  return {
      {"pull", OnSuccess::share, OnReferences::add, Guard::skip, true},
      {"update", OnSuccess::handoff, OnReferences::keep, update_requires_no_ref ? Guard::refuse : Guard::none,
       true},
      {"delete", OnSuccess::share, OnReferences::clear, Guard::refuse, true},
      {"once", OnSuccess::share, OnReferences::keep, Guard::none, false},  // S37
  };
}

struct EngineSettings {
  Scope default_scope = Scope::operation;                        // S7
  bool server_keeps_references = true;                           // S17, S18
  bool allow_multi_node_download = true;                         // S3
  Duration retain_completed = std::chrono::minutes(5);           // S10
  Duration max_keep = std::chrono::hours(7 * 24);                // S38
  Duration retain_permanent_failure = std::chrono::seconds(10);  // S12
  Duration retain_released = std::chrono::minutes(1);            // S15
  Duration claim_timeout = std::chrono::seconds(10);             // S14
  Duration shortest_claim = std::chrono::milliseconds(500);      // S35
  Duration bond_grace = std::chrono::seconds(3);                 // S21
  Duration restored_bond_grace{};  // S31: of bonds that a state was loaded with, where it is longer
  Duration max_hold = std::chrono::hours(1);  // S23; 0 = for ever
  Duration stall_timeout = Duration(0);       // S22; 0 = off
  uint32_t max_queue = 100'000;               // waiters a lane
  // Of all resources together; beyond them a call is refused. Several threads at once may pass them by a few.
  size_t max_resources = 10'000'000;
  size_t max_references = 10'000'000;
  size_t max_waiters = 1'000'000;
  size_t max_result_memory = size_t(256) << 20;  // bytes of all results together (S39)
  // S35: for whoever was not heard of for claim_timeout when its turn comes.
  Duration short_claim() const {
    return std::max(claim_timeout / 10, std::min(claim_timeout, shortest_claim));
  }
  uint32_t most_told = 500;  // waiters of an ended queue that are told in one step (S34)
  uint32_t shards = 32;
  std::vector<OperationRules> operations = default_operations(false);
};

}  // namespace turnstile
