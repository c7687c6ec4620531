// The lock service without wires: every rule of docs/semantics.md sections 2 to 6 behind one class.
//
// A call finds its resource's shard, locks the resource, applies the rules (rules.h) and hands the effects to
// the commit sink before it unlocks. Time is an argument; there is no clock, thread, log or I/O in this
// folder.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "engine/answer.h"
#include "engine/command.h"
#include "engine/commit_sink.h"
#include "engine/counters.h"
#include "engine/effects.h"
#include "engine/loaded_texts.h"
#include "engine/operations.h"
#include "engine/settings.h"
#include "engine/walk.h"

namespace turnstile {

class Shard;
struct Resource;

// To a subscription: the current state as events, if it matters (S27).
struct SubscribeAnswer {
  Refusal refusal = Refusal::none;  // it would be a bond, and there is no room for one: nothing has begun
  std::vector<Event> state;
};

// Time: `now` comes with each call. Calls on one resource may be a few microseconds out of order when they
// come from several threads; no rule depends on that. Threads: every call may be made by any thread, each
// with an Effects of its own. load() only before all others. Invariant: a resource lives in the shard its id
// hashes to; one holder per conflict; tokens only grow.
class Engine {
 public:
  // Tokens start above `first_token`, and above every one that is loaded.
  Engine(EngineSettings settings, CommitSink& sink, Token first_token);
  // Before finish_load(): what is only loaded commits nothing, and may be loaded before anybody knows for
  // whom.
  void use(CommitSink& sink) { sink_ = &sink; }
  ~Engine();

  LockAnswer lock(const LockCommand& command, Time now, Effects& out);
  UnlockAnswer unlock(const UnlockCommand& command, Time now, Effects& out);
  RenewAnswer renew(const RenewCommand& command, Time now, Effects& out);
  CancelAnswer cancel(const CancelCommand& command, Time now, Effects& out);
  StatusAnswer status(const StatusCommand& command, Time now, Effects& out);
  BreakAnswer break_hold(const BreakCommand& command, Time now, Effects& out);
  ForgetAnswer forget(const ForgetCommand& command, Time now, Effects& out);
  // The next `most_resources` of a list's walk; true: it is finished and its answer can be read.
  bool list_some(ListWalk& walk, size_t most_resources, Time now);

  ReferencesAnswer references(const ReferencesCommand& command, Effects& out);
  ReferencesAnswer add_reference(const ReferenceCommand& command, Time now, Effects& out);
  ReferencesAnswer release_reference(const ReferenceCommand& command, Time now, Effects& out);
  // All references of a node, a step for each resource that it uses; `after_step` is called for each with its
  // effects, which are then cleared. True: the walk is finished and its answer can be read.
  bool release_node_some(ReleaseNodeWalk& walk, size_t most_resources, Time now, Effects& out,
                         const std::function<void(Effects&)>& after_step);

  // `at_position` is called while the resource is locked: what the sink has taken by then is in the state,
  // everything later is still to come. Not called if it is refused.
  SubscribeAnswer subscribe(const SubscribeCommand& command, Time now, Effects& out,
                            const std::function<void()>& at_position);
  // A bond has broken: the connection of a monitor:true lock, or a subscription.
  void close_bond(const LaneName& lane, const Requester& who, BondId bond, Time now, Effects& out);
  bool has_bond(const LaneName& lane, const Requester& who, BondId bond);
  // The connection of an open long poll has broken. If its Wake is on the way, it is undelivered.
  void break_poll(const LaneName& lane, const Requester& who, PollId poll, Time now, Effects& out);
  // An open long poll's time is up. The answer is `queued`; nothing if its Wake is already under way.
  std::optional<LockAnswer> end_poll(const LaneName& lane, const Requester& who, PollId poll, Time now,
                                     Effects& out);

  // The Wake with this grant could not be handed to its long poll, whose connection had broken before. If
  // nothing else has claimed the hold, it is unclaimed again (S36).
  void undelivered(const LaneName& lane, const Requester& who, Token token, Time now, Effects& out);
  // After a step whose effects were `unfinished`: tells the next of those whose waits have ended (S34). Again
  // while its effects are. If nobody calls it, expire() does the same, a slice each time.
  void go_on(ResourceId resource, Time now, Effects& out);

  // Ends what has run out, for at most `limit` resources; returns how many it looked at. Each resource is a
  // step of its own, and `after_step` is called for each with its effects, which are then cleared.
  size_t expire(Time now, Effects& out, size_t limit, const std::function<void(Effects&)>& after_step);
  Time next_deadline() const;

  // Recovery: facts in the order of the journal, then once finish_load(), which gives leases and bonds their
  // full time again (S31) and checks the invariants. Returns how many lanes are held and how many requesters
  // wait, or that there are more names of operations than a server can have.
  void load(const Record& record);
  void raise_tokens(Token used) { counters_.raise_tokens(uint64_t(used)); }
  struct Loaded {
    size_t resources = 0, holds = 0, waiters = 0;
  };
  // While more may be loaded, once all steps up to `latest` have been: forgets what has run out by then and
  // what is empty, of which no record tells. Without that a log that never ends would pile it up.
  void tidy_loaded(Time latest);
  Result<Loaded> finish_load(Time now, Effects& out, const std::function<void(Effects&)>& after_step);
  // Once more the full time, if finishing took long: until the server answers, nobody could renew.
  void restart_times(Time now);
  // Every fact that is held now, resource by resource, while others go on working.
  void dump(const std::function<void(const Record&)>& write);

  const EngineSettings& settings() const { return settings_; }
  uint64_t waiter_count() const { return counters_.waiters.load(std::memory_order_relaxed); }
  uint64_t reference_count() const { return counters_.references.load(std::memory_order_relaxed); }
  uint64_t result_bytes() const { return counters_.result_bytes.load(std::memory_order_relaxed); }
  size_t resource_count() const;
  // How many lanes have a completion, by the name that metrics have for their operation; kept as it changes.
  template <class Visit>
  void for_each_kept(Visit visit) const {
    operations_.for_each_kept(visit);
  }
  // Called for each held lane and each queue; for gauges after recovery.
  void for_each_lane(const std::function<void(std::string_view operation, bool held, size_t waiters)>& visit);

 private:
  // Runs `step(Rules&)` on the resource, made if need be; the sink has taken its effects when it returns.
  template <class Step>
  auto with_resource(Shard& shard, ResourceId id, Time now, Effects& out, Step step);
  // The same, but a resource that is not there stays away and a default answer is given.
  template <class Step>
  auto with_known_resource(ResourceId id, Time now, Effects& out, Step step);
  template <class Step>
  auto run_step(Shard& shard, Resource& resource, Time now, Effects& out, Step step);
  template <class Visit>
  bool walk_some(WalkPlace& place, size_t most, std::string_view prefix, Visit visit);
  template <class Visit>
  void walk_all(Visit visit);
  void look(Resource& resource, ListWalk& walk, Time now);
  void read_page(ListWalk& walk, Time now);
  template <class Answer>
  Answer full(Refusal refusal, Effects& out) const;
  Shard& shard_of(ResourceId id);
  // Whether another resource may be made, if this one is not there yet.
  bool has_room_for(ResourceId id, const Shard& shard) const;

  const EngineSettings settings_;
  CommitSink* sink_;
  Operations operations_;
  Counters counters_;
  LoadedTexts last_texts_;  // while loading
  std::vector<std::unique_ptr<Shard>> shards_;
  size_t share_ = 0;  // of max_resources, for each shard
};

}  // namespace turnstile
