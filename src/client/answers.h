// What the server says, as values. Unknown fields are ignored; a field of the wrong type, or one missing that
// the API promises, means that it was no Turnstile server that answered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/timing.h"
#include "turnstile/hold.h"
#include "turnstile/lock_client.h"
#include "turnstile/status.h"

namespace turnstile::client {

// An answer other than 200.
struct Refusal {
  std::string code, error;
  std::string leader;  // with not_leader: where to ask, if the server knows
  std::vector<std::string> nodes;
};

struct LockAnswer {
  enum class State { acquired, queued, skipped, cancelled };
  State state = State::queued;
  uint64_t token = 0;
  uint32_t attempt = 1;
  std::string previous_error;
  std::vector<std::string> references;
  SkippedWork work;  // with skipped
  WaitingStatus waiting;
};

// What a status poll tells the requester that it names.
struct OwnStatus {
  bool acquired = false, completed = false;
  uint32_t position = 0;  // 0: not in the queue
  LaneStatus lane;
};

template <class T>
struct BatchElement {
  int status = 0;
  std::optional<T> answer;  // with 200
  Refusal refusal;          // else
};

// nullopt: not what Turnstile answers.
std::optional<Refusal> read_refusal(std::string_view body);
std::optional<LockAnswer> read_lock(std::string_view body);
std::optional<Released> read_unlock(std::string_view body);
std::optional<Milliseconds> read_renew(std::string_view body);
std::optional<bool> read_cancel(std::string_view body);
std::optional<OwnStatus> read_status(std::string_view body);
std::optional<LanePage> read_list(std::string_view body);
std::optional<ReferenceStatus> read_references(std::string_view body);
std::optional<uint32_t> read_released_node(std::string_view body);  // how many
std::optional<std::string> read_break(std::string_view body);       // the node that held
std::optional<bool> read_forgotten(std::string_view body);
std::optional<Event> read_event(std::string_view data);
bool is_json_object(std::string_view body);

std::optional<std::vector<BatchElement<LockAnswer>>> read_lock_batch(std::string_view body);
std::optional<std::vector<BatchElement<Released>>> read_unlock_batch(std::string_view body);
std::optional<std::vector<BatchElement<Milliseconds>>> read_renew_batch(std::string_view body);
std::optional<std::vector<BatchElement<ReferenceStatus>>> read_references_batch(std::string_view body);

}  // namespace turnstile::client
