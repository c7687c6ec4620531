// The rules of docs/semantics.md sections 2 to 6 (S1 to S26, S34 to S40) once more, as naively as they can be
// written.
//
// The engine is fast and careful about memory; this is neither. It exists so that two independent readings of
// the same text can be compared by random commands (history.h). It shares with the engine only the types of
// its interface: commands, settings, and the enums of answers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/command.h"
#include "engine/settings.h"
#include "operation_table.h"
#include "plain.h"

namespace turnstile::model {

// Each *_until is when something ends; kNever when it does not.
struct Hold {
  Who who;
  uint64_t token = 0;
  Scope scope{};
  Time since{};
  Duration lease{};  // 0: none
  bool monitor = false;
  uint32_t attempt = 1;
  std::string previous_error;
  std::string info;
  std::optional<Progress> progress;
  bool unclaimed = false;
  size_t by_polls = 0;  // S36: so many long polls are all that shows that it is known
  Time claim_until = kNever, lease_until = kNever, max_until = kNever, bond_until = kNever,
       stall_until = kNever;

  bool plain() const { return lease == Duration(0) && !monitor; }  // S23
};

struct Waiter {
  Who who;
  uint64_t ticket = 0;  // the order of queueing over the whole server
  Scope scope{};
  Time since{};
  Time heard{};  // S35: the last sign of life
  Duration lease{};
  bool monitor = false;
  bool dereference = false;
  std::string info;
  std::set<uint64_t> polls;
  Time grace_until = kNever;  // S21: its last bond has broken
};

// S39: what those are told who skip by a success.
struct Done {
  std::string node;
  Time at{};
  std::string result;
};

struct Completion {
  PlainCompletion what;
  Time until{};
  uint64_t token = 0;  // of the hold that ended so
  uint32_t attempt = 0;
};

struct Released {
  uint64_t token = 0;
  std::string node;
  Time until{};
};

struct Ended {
  Ending how{};
  std::string error;
  Time until{};
  uint64_t token = 0;  // of the hold that ended it, where one did
  uint32_t attempt = 0;
  std::optional<Done> done{};
};

struct Bond {
  Who who;
  uint64_t id = 0;
  bool connection = false;  // of a lock with monitor:true; else a subscription
  friend auto operator<=>(const Bond&, const Bond&) = default;
};

struct LaneModel {
  std::optional<Hold> hold;
  std::vector<Waiter> waiters;  // in the order of their tickets
  uint32_t failures = 0;
  std::string last_error;
  std::optional<Completion> completion;
  std::optional<Released> released;
  std::map<Who, Ended> ended;
  std::set<Bond> bonds;
};

struct ResourceModel {
  std::map<std::string, LaneModel> lanes;  // by operation
  std::set<std::string> references;
};

// Not its job: speed, memory, records. Every call looks at everything it needs anew.
// Time: an argument. Threads: one.
// Invariant: none that it checks itself; the history compares it, and invariants.h checks the engine apart
// from it.
class Model {
 public:
  explicit Model(EngineSettings settings, OperationTable table = OperationTable())
      : settings_(std::move(settings)), table_(std::move(table)) {}

  PlainLock lock(const LockCommand& command, Time now, Step& out);
  PlainUnlock unlock(const UnlockCommand& command, Time now, Step& out);
  PlainRenew renew(const RenewCommand& command, Time now);
  bool cancel(const CancelCommand& command, Time now, Step& out);
  PlainStatus status(const StatusCommand& command, Time now);
  PlainBreak break_hold(const BreakCommand& command, Time now, Step& out);
  bool forget(const ForgetCommand& command, Time now);
  // Lanes that are not idle, in the order of (resource, operation).
  std::vector<PlainStatus> list(Time now);

  PlainReferences references(ResourceId resource);
  PlainReferences add_reference(const ReferenceCommand& command);
  PlainReferences release_reference(const ReferenceCommand& command);
  PlainReferences release_node(NodeId node);

  std::vector<PlainEvent> subscribe(const SubscribeCommand& command, Time now);
  void close_bond(const LaneName& lane, const Requester& who, BondId bond, Time now);
  bool has_bond(const LaneName& lane, const Requester& who, BondId bond) const;
  void break_poll(const LaneName& lane, const Requester& who, PollId poll, Time now);
  std::optional<PlainLock> end_poll(const LaneName& lane, const Requester& who, PollId poll, Time now);

  void undelivered(const LaneName& lane, const Requester& who, Token token, Time now);

  // What has run out ends; by resource.
  std::map<std::string, Step> expire(Time now);
  // `forgotten`: what is only remembered, and no longer than this, does not count.
  Time next_deadline(Time forgotten = Time::min()) const;
  // The server has crashed and come back (S31). By resource: who goes at once, which a bond_grace of 0 may
  // cause.
  std::map<std::string, Step> restart(Time now);

  // For the driver: what a caller could know, to make plausible commands.
  const Hold* hold(const Lane& lane) const;
  const Waiter* front(const Lane& lane) const;
  const Released* released(const Lane& lane) const;
  // For counting what a history has reached.
  const std::map<std::string, ResourceModel>& resources() const { return resources_; }
  size_t waiter_count() const;
  // Resources that must take memory (S20).
  size_t resource_count(Time now) const;
  // Resources that may take memory because somebody is subscribed.
  size_t resources_with_bonds() const;

 private:
  // One lane of one resource, and the step it is worked on in. Made anew for each call.
  struct Place {
    Lane name;
    ResourceModel& resource;
    LaneModel& lane;
    OperationRow rules;
  };
  // A decision about a request that no hold or waiter stands in the way of; granted if neither.
  struct Verdict {
    std::optional<Ending> ending;
    std::string error;
    std::vector<std::string> references;
    uint64_t token = 0;  // of the hold that it follows from
    uint32_t attempt = 0;
    std::optional<Done> done{};
  };

  Place place(const LaneName& lane) {
    return place(std::string(lane.operation.text), std::string(lane.resource.text));
  }
  Place place(const std::string& operation, const std::string& resource);

  // lock, by its steps
  PlainLock holder_asks_again(Place& at, const LockCommand& command, Time now);
  PlainLock waiter_asks_again(Place& at, Waiter& waiter, const LockCommand& command, Time now);
  PlainLock enqueue(Place& at, const LockCommand& command, Scope scope, Time now);
  Verdict judge(Place& at, const std::string& node, bool dereference, Time now, bool drop_reference);
  void drop_reference(Place& at, const std::string& node, bool dereference);
  void use(Place& at, const std::string& node);
  bool has_room_for_reference(const ResourceModel& resource, const std::string& node) const;

  // holds
  Hold& grant(Place& at, Hold hold, Time now, Step& out);
  void claim(Place& at, Time now);
  void start_clocks(Hold& hold, Time now);
  void watch_bonds(LaneModel& lane, Time now);
  void end_by_failure(Place& at, EventKind kind, const std::string& reason, Time now, Step& out);
  Hold end_hold(Place& at, EventKind kind, const std::string& error, bool permanent, Time now, Step& out);
  Refusal check_holder(const Place& at, const Requester& who, Token token) const;

  // waiters
  void end_wait(Place& at, const Who& who, const Verdict& verdict, Time now, Step& out);
  void leave_overdue(const std::string& name, Time now, Step& out);
  void leave(Place& at, const Who& who, const std::string& reason, Time now, Step& out);
  void grant_waiter(Place& at, const Who& who, Time now, Step& out);
  void advance(const std::string& resource, Time now, Step& out);
  bool advance_once(const std::string& resource, Time now, Step& out);
  void settle(ResourceModel& resource);

  // time
  static Time due(const Hold& hold);
  static std::string due_reason(const Hold& hold);
  static Time due(const ResourceModel& resource, Time forgotten = Time::min());
  void expire_resource(const std::string& name, ResourceModel& resource, Time now, Step& out);

  // views
  PlainLock acquired(const Hold& hold) const;
  PlainLock queued(const Place& at, const Waiter& waiter) const;
  std::vector<PlainHolder> in_the_way(const Place& at, Scope scope) const;
  static PlainDone view(const std::optional<Done>& done, Time now);
  static PlainHolder view(const std::string& operation, const Hold& hold);
  static std::vector<std::string> nodes_waiting(const ResourceModel& resource);
  static std::vector<std::string> names(const std::set<std::string>& nodes);

  EngineSettings settings_;
  OperationTable table_;
  std::map<std::string, ResourceModel> resources_;
  uint64_t last_token_ = 0;
  uint64_t last_ticket_ = 0;
};

// S7.
inline bool conflict(const std::string& operation_a, Scope a, const std::string& operation_b, Scope b) {
  return operation_a == operation_b || a == Scope::resource || b == Scope::resource;
}

Who who_of(const Requester& who);
bool has_any_bond(const LaneModel& lane, const Who& who);
Waiter* find_waiter(LaneModel& lane, const Who& who);

}  // namespace turnstile::model
