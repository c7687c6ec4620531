// The rules of docs/semantics.md for one resource: what each command does to it, and what follows.
//
// Split over rules_*.cc by section of that document: lock (2), end (3), references (5), alive (6), status,
// facts (8).
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/plant.h"
#include "engine/answer.h"
#include "engine/command.h"
#include "engine/counters.h"
#include "engine/effects.h"
#include "engine/loaded_texts.h"
#include "engine/resource.h"
#include "engine/settings.h"

namespace turnstile {

// One step on one resource. Made for each command, while the resource is locked, and gone afterwards.
//
// Time: `now` is that of the step. Threads: none; the resource's mutex is held by the caller.
// Invariant: after finish() no two holds of the resource conflict, and no waiter could be granted that is
// not.
class Rules {
 public:
  Rules(const EngineSettings& settings, Counters& counters, bool wants_records, Resource& resource, Time now,
        Effects& out)
      : settings_(settings),
        counters_(counters),
        wants_records_(wants_records),
        resource_(resource),
        now_(now),
        out_(out),
        to_tell_(settings.most_told) {}

  LockAnswer lock(const LockCommand& command, const Operation& operation);

  UnlockAnswer unlock(const UnlockCommand& command);
  CancelAnswer cancel(const CancelCommand& command);
  BreakAnswer break_hold(const BreakCommand& command);
  ForgetAnswer forget(const ForgetCommand& command);

  RenewAnswer renew(const RenewCommand& command);
  void close_bond(OperationName operation, const Requester& who, BondId bond);
  bool has_bond(OperationName operation, const Requester& who, BondId bond) const;
  void break_poll(OperationName operation, const Requester& who, PollId poll);
  std::optional<LockAnswer> end_poll(OperationName operation, const Requester& who, PollId poll);
  void undelivered(OperationName operation, const Requester& who, Token token);
  void expire();
  // Tells the next ones whose waits have ended with their queue (S34).
  void go_on();

  ReferencesAnswer references(const ReferencesCommand& command);
  bool has_reference(NodeId node) const;
  ReferencesAnswer add_reference(NodeId node);
  ReferencesAnswer release_reference(NodeId node);

  StatusAnswer status(const StatusCommand& command);
  // Names at most so many waiters and nodes of a kind.
  StatusAnswer lane_status(const Lane& lane, size_t names = kMostNamed);
  LaneState state_of(const Lane& lane) const;
  // Whether a list has it, as far as it asks for states and a node; if it asks for none, whether anything is
  // to be told of it.
  bool is_listed(const Lane& lane, const ListCommand& wanted) const;
  // What it is ordered by: the lowest comes first.
  uint64_t rank_of(const Lane& lane, ListOrder order) const;
  // `operation`: of a subscription that is to be a bond; else nullptr.
  std::vector<Event> subscribe(const SubscribeCommand& command, const Operation* operation);

  void load(const Record& record, const Operation* operation, LoadedTexts& texts);
  // Forgets what has run out, and lanes that are empty; more may be loaded.
  void tidy_loaded();
  void finish_load();
  void restart_times();
  void dump();  // every fact, into the records

  // Forgets what is empty and checks the invariants. Every step ends with it.
  void finish();
  // When something of the resource runs out next.
  Time next_deadline() const;

  Lane* find_lane(OperationName operation) const;

 private:
  // What S4, S5 and S19 say to a request that nobody is in the way of.
  struct Admission {
    LockState state = LockState::acquired;
    Refusal refusal = Refusal::none;
    SharedText error;
    NodesView references;
    EndedHold hold;  // whose completion it is
  };

  // rules_lock.cc
  std::optional<LockAnswer> asked_again(Lane& lane, const LockCommand& command);
  LockAnswer held_already(Lane& lane, const LockCommand& command);
  LockAnswer waits_already(Lane& lane, Waiter& waiter, const LockCommand& command);
  LockAnswer enqueue(Lane& lane, const LockCommand& command, Scope scope);
  Admission admit(const Lane* lane, const Operation& operation, NodeId node, bool dereference);
  const Lane* holder_in_the_way(const Operation& operation, Scope scope) const;
  bool waiter_in_the_way(const Lane* own, Scope scope, uint64_t before) const;
  LockAnswer queued_answer(const Lane& lane, const Waiter& waiter);
  void grant(Lane& lane, Hold hold, Time waited_since);
  LockAnswer acquired_answer(const Lane& lane);
  HolderView holder_view(const Lane& lane);
  Lane& get_lane(const Operation& operation);

  // rules_end.cc
  Refusal check_holder(const Lane* lane, const Requester& who, Token token) const;
  void succeed(Lane& lane, const UnlockCommand& command, UnlockAnswer& answer);
  void fail(Lane& lane, EventKind kind, std::string_view error, bool permanent);
  EndedHold end_hold(Lane& lane, EventKind kind, std::string_view error, bool permanent,
                     std::string_view result = {});
  KeptResult take_result(const Lane& lane, const UnlockCommand& command, UnlockAnswer& answer);
  Duration cut(Duration keep) const {  // S38
    return planted(Plant::keep_not_cut) ? keep : std::min(keep, settings_.max_keep);
  }
  void void_other_lanes(const Lane& lane);
  void void_lane(Lane& lane);
  void end_wait(Lane& lane, const Waiter& waiter, Ending how, const Admission& why);
  void leave_queue(Lane& lane, const Waiter& waiter, std::string_view reason);
  void has_left(Lane& lane, const Waiter& left, std::string_view reason);
  void advance();
  void let_go(Lane& lane, const Waiter& waiter);
  void grant_waiter(Lane& lane, const Waiter& waiter);

  // rules_ended.cc
  void end_queue(Lane& lane, Ending how, const SharedText& error, const EndedHold& hold);
  void tell_ended(Lane& lane);
  void tell_named(Lane& lane, const Requester& who);
  void tell(Lane& lane, EndedQueue& ended, const Waiter& waiter);
  bool is_ended(const Lane& lane, const Requester& who) const;
  void insert_references(const WaitQueue& waiters);
  Endings& endings_of(Lane& lane);

  // rules_alive.cc
  void claim(Lane& lane);
  void start_deadline(Hold& hold);
  void apply_monitor(Lane& lane, bool monitor);
  bool add_bond(Lane& lane, const Requester& who, BondId bond, bool subscription);
  bool has_any_bond(const Lane& lane, const Requester& who) const;
  void bond_gained(Lane& lane, const Requester& who);
  void bond_lost(Lane& lane, const Requester& who);
  void drop_connection_bonds(Lane& lane, const Requester& who);
  std::string_view due_reason(const Hold& hold) const;
  void drop_retained(Lane& lane);
  void leave_overdue();

  // rules_references.cc
  bool keeps_references() const { return settings_.server_keeps_references; }
  bool has_room_for_reference(NodeId node) const;
  bool insert_reference(NodeId node);
  bool erase_reference(NodeId node);
  void clear_references();
  NodesView reference_names(size_t names = kMostNamed);
  ReferencesAnswer changed_references(bool changed);

  // rules_status.cc
  NodesView waiting_nodes(size_t names = kMostNamed);
  std::optional<DoneView> done_view(const EndedHold& hold);
  Event event_of(EventKind kind, const Lane& lane, const Requester& who);

  // rules_facts.cc: one record each, if anybody wants them
  Record fact(RecordKind kind, const Lane* lane);
  void record_hold(const Lane& lane);
  void record_waiter(const Lane& lane, const Waiter& waiter);
  void record_lane(RecordKind kind, const Lane& lane, uint64_t number = 0);
  Record hold_record(const Lane& lane);
  Record waiter_record(const Lane& lane, const Waiter& waiter);
  Record completion_record(const Lane& lane);
  Record released_record(const Lane& lane);
  Record failures_record(const Lane& lane);
  Record ending_record(RecordKind kind, const Lane& lane, const Requester& who, const Endings::Entry& entry);
  Record reference_record(RecordKind kind, std::string_view node);
  void record(const Record& record) {
    if (wants_records_) out_.records.push_back(record);
  }
  void load_lane(const Record& record, const Operation& operation, const LoadedTexts& texts);

  void measure(MeasureKind kind, const Lane& lane, Duration time = {}, uint32_t count = 1) {
    if (kind == MeasureKind::queued) counters_.waiters.fetch_add(count, std::memory_order_relaxed);
    if (kind == MeasureKind::left_queue) counters_.waiters.fetch_sub(count, std::memory_order_relaxed);
    out_.measures.push_back({kind, lane.operation->metric_name(), time, count});
  }
  const Endings::Entry* ending_of(const Lane& lane, const Requester& who) const;
  const Completion* kept_completion(const Lane* lane) const;
  // Names of the user's own may be forgotten as soon as the resource is unlocked.
  OperationName name_of(const Lane& lane) {
    const std::string_view name = lane.rules().name;
    return OperationName(lane.operation->configured ? name : out_.keep(name));
  }
  Requester keep(const Requester& who) {
    return {NodeId(out_.keep(who.node.text)), RequestId(out_.keep(who.request.text))};
  }
  // A text that others share, and the copy that this step has made of it.
  template <class Shared>
  struct Copy {
    Shared of;
    std::string_view view;
  };
  // Once for all that share it.
  template <class Shared>
  std::string_view keep_once(Copy<Shared>& last, const Shared& text) {
    if (text.empty()) return {};
    if (!last.of.same_as(text)) last = {text, out_.keep(text.view())};
    return last.view;
  }
  std::string_view keep(const SharedText& error) { return keep_once(kept_error_, error); }
  std::string_view keep(const KeptResult& result) { return keep_once(kept_result_, result); }
  NodeId node_of(const EndedHold& hold) { return NodeId(keep_once(kept_node_, hold.node)); }
  template <class Visit>
  void for_each_lane(Visit visit) const {
    for (Lane* lane = resource_.lanes.get(); lane != nullptr; lane = lane->next.get()) visit(*lane);
  }
  void check_invariants() const;

  const EngineSettings& settings_;
  Counters& counters_;
  const bool wants_records_;
  Resource& resource_;
  const Time now_;
  Effects& out_;
  size_t to_tell_;  // how many more of ended queues this step may tell
  Copy<SharedText> kept_error_, kept_node_;
  Copy<KeptResult> kept_result_;
  std::optional<NodesView> named_;  // what reference_names() has said, until the set changes
};

}  // namespace turnstile
