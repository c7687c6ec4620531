// What the simulated clients did and saw: the only thing that the checker judges by.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "wires.h"

namespace turnstile::sim {

enum class CallKind : uint8_t {
  lock,
  unlock,
  renew,
  cancel,
  status,
  break_hold,
  forget,
  references,
  add_reference,
  release_reference,
  release_node,
  other,
};
std::string_view name_of(CallKind kind);

// One call of the API, an item of a batch included.
struct Call {
  CallKind kind = CallKind::other;
  // What was asked.
  std::string type, resource, node, request;
  bool resource_scope = false, monitor = false, dereference = false, success = false, permanent = false,
       progress = false;
  uint64_t token = 0;  // 0: none was given
  Duration lease{}, wait{};
  std::optional<Duration> keep;  // S38
  std::string result;            // S39
  LinkPtr link;                  // none: in a batch, which is nobody's bond
  uint64_t number = 0;           // which of the link's requests it is
  Time invoked{};
  // What was told. Never: the answer was lost, or is under way.
  Time returned = kNever;
  unsigned status = 0;
  uint64_t stamp = 0;  // when the answer was handed to the kernel
  std::string state;   // of lock: acquired, queued, skipped, …
  uint64_t told_token = 0, holder_token = 0;
  uint32_t position = 0;
  bool done = false;     // released, renewed, cancelled, broken, changed
  bool already = false;  // S15
  std::optional<Duration> told_keep;
  std::string told_result, completed_by;
  std::vector<std::string> nodes;
  bool more_nodes = false;

  bool answer_left() const { return link && number < link->answers; }
  bool has_returned() const { return returned != kNever; }
  std::string lane() const { return type + " " + resource; }
  std::string who() const { return node + "/" + request; }
};

struct SeenEvent {
  uint64_t id = 0;  // 0: part of the state at the beginning
  bool reset = false;
  std::string kind, type, resource, node, request;
  uint64_t token = 0;
  std::string result;
  Time seen{};
  uint64_t stamp = 0;
};

// One connection's worth of an event stream.
struct SeenStream {
  std::string type, resource;  // a lane; else empty
  std::string node, request;   // whose bond it is; else empty
  uint64_t after = 0;          // resumed behind this event; 0: not resumed
  LinkPtr link;
  Time opened{};
  std::vector<SeenEvent> events;
  uint64_t first_stamp = 0;  // of what it began with: the state, unless it was resumed
  std::string rest;          // bytes of an event that is not complete
};

struct History {
  bool resource_scope_by_default = false;
  std::deque<Call> calls;
  std::deque<SeenStream> streams;
  std::set<uint64_t> late;  // stamps of answers by a leader that had slept for longer than its lease

  // The calls of a request, to be ended with its answer.
  std::vector<Call*> begin(const WireRequest& request, const LinkPtr& link, Time now);
  void end(const std::vector<Call*>& calls, unsigned status, const std::string& body, uint64_t stamp,
           Time now);
  static void read(SeenStream& stream, const std::string& bytes, uint64_t stamp, Time now);
};

std::string show(const Call& call, Time start);

// key=value of a query string; ids in simulations need no escapes.
std::string query_field(std::string_view target, std::string_view name);

}  // namespace turnstile::sim
