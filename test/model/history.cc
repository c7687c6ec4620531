// One call after the other, on both sides, and the comparison after each.
#include "history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <set>
#include <utility>

#include "base/hash.h"
#include "engine_plain.h"
#include "invariants.h"
#include "model.h"
#include "tokens.h"

namespace turnstile::model {
namespace {

constexpr Token kUnknownToken = Token(uint64_t(1) << 50);
constexpr Time kStart = Time(std::chrono::hours(24 * 365 * 50));

int64_t since_start(Time time) { return (time - kStart).count(); }

struct Mismatch {
  std::string what;
};

// Not its job: making commands up, or shrinking. Lives for one history.
class Runner {
 public:
  Runner(const RandomHistory& history, bool with_trace, bool echo)
      : history_(history),
        model_(history.settings, OperationTable(history.update_requires_no_ref, history.own_rules)),
        subject_(history.settings, history.first_token),
        invariants_(history.first_token),
        with_trace_(with_trace),
        echo_(echo) {
    for (const RandomCommand& command : history.commands) {
      if (command.call == Call::pass_time || command.call == Call::reload) continue;
      operations_.insert(command.operation);
      resources_.insert(command.resource);
    }
  }

  Outcome run() {
    Outcome outcome;
    try {
      for (; outcome.at < history_.commands.size(); ++outcome.at)
        one(history_.commands[outcome.at], outcome.at);
      go_on();
      compare_everything();
    } catch (const Mismatch& mismatch) {
      outcome.mismatch = mismatch.what;
    }
    outcome.rare = rare_;
    outcome.trace = std::move(trace_);
    outcome.trace_hash = xxh3_64(outcome.trace);
    return outcome;
  }

 private:
  void one(const RandomCommand& command, size_t index) {
    if (command.call == Call::pass_time) now_ = time_of(command);
    if (command.call == Call::reload) now_ += command.amount;
    if (says()) say(fmt::format("{} @{} {}", index, since_start(now_), show(command)));
    if (command.call == Call::reload) return reload(command);
    const bool in_batch = std::exchange(in_batch_, command.more_follow && command.call != Call::pass_time);
    if (command.call == Call::pass_time) go_on();
    if (model_.next_deadline() <= now_) {
      if (command.expire_first && !in_batch)
        expire(1 + index % 3);
      else
        reached(Rare::too_late);
    }
    if (command.call == Call::pass_time) return remember();
    resolve(command);
    dispatch(command);
    if (!history_.told_late && !in_batch_) go_on();
    compare_resource(command.resource);
    if (index % 8 == 7 && !in_batch_) compare_everything();
    remember();
  }

  Time time_of(const RandomCommand& command) const {
    const Time deadline = model_.next_deadline();
    if (command.time == TimeChoice::amount || deadline == kNever) return now_ + command.amount;
    const Time to = command.time == TimeChoice::just_before_deadline ? deadline - Duration(1)
                    : command.time == TimeChoice::at_deadline        ? deadline
                                                                     : deadline + command.amount;
    return std::max(now_, to);
  }

  // Who and which lane, as views into members that live until the next command.
  void resolve(const RandomCommand& command) {
    lane_ = {command.operation, command.resource};
    who_ = {command.node, command.request};
    if (const Hold* hold = model_.hold(lane_); hold && command.chosen == Chosen::the_holder) who_ = hold->who;
    if (const Waiter* front = model_.front(lane_); front && command.chosen == Chosen::the_front_waiter)
      who_ = front->who;
    lane_name_ = {OperationName(lane_.operation), ResourceId(lane_.resource)};
    requester_ = {NodeId(who_.node), RequestId(who_.request)};
  }

  Token token_of(const RandomCommand& command) const {
    const Hold* hold = model_.hold(lane_);
    const Released* released = model_.released(lane_);
    switch (command.token) {
      case TokenChoice::none:
        return Token::none;
      case TokenChoice::current:
        return hold ? Token(hold->token) : kUnknownToken;
      case TokenChoice::released:
        return released ? Token(released->token) : kUnknownToken;
      case TokenChoice::unknown:
        return kUnknownToken;
    }
    return kUnknownToken;
  }

  void dispatch(const RandomCommand& command) {
    switch (command.call) {
      case Call::lock:
        return lock(command);
      case Call::unlock:
        return unlock(command);
      case Call::renew:
        return renew(command);
      case Call::cancel:
        return call(
            [&](Step& out) { return model_.cancel({lane_name_, requester_}, now_, out); },
            [&](Effects& out) { return engine().cancel({lane_name_, requester_}, now_, out).cancelled; });
      case Call::status:
        return call(
            [&](Step&) { return model_.status({lane_name_, requester_}, now_); },
            [&](Effects& out) { return plain(engine().status({lane_name_, requester_}, now_, out)); });
      case Call::break_hold:
        return break_hold(command);
      case Call::forget:
        return call(
            [&](Step&) {
              const bool kept = model_.forget({lane_name_}, now_);
              if (kept) reached(Rare::forgotten);
              return kept;
            },
            [&](Effects& out) { return engine().forget({lane_name_}, now_, out).forgotten; });
      case Call::list:
        return compare("list", model_.list(now_), engine_list());
      case Call::subscribe:
        return subscribe(command);
      case Call::close_bond:
        return bond_closes(command);
      case Call::undelivered: {
        const Token token = token_of(command);
        return taken_back([&] {
          call([&](Step&) { return model_.undelivered(lane_name_, requester_, token, now_), true; },
               [&](Effects& out) {
                 engine().undelivered(lane_name_, requester_, tokens_.to_engine(token), now_, out);
                 return true;
               });
        });
      }
      case Call::break_poll:
      case Call::end_poll:
        return poll_ends(command);
      default:
        return references(command);
    }
  }

  // Counts whether it makes a claimed hold an unclaimed one.
  void taken_back(const std::function<void()>& call) {
    const Hold* before = model_.hold(lane_);
    const bool claimed = before && !before->unclaimed;
    call();
    const Hold* after = model_.hold(lane_);
    if (claimed && after && after->unclaimed) reached(Rare::undelivered);
  }

  void lock(const RandomCommand& command) {
    LockCommand asked{.lane = lane_name_, .who = requester_, .scope = command.scope};
    asked.lease = command.lease;
    asked.monitor = command.monitor;
    asked.dereference = command.dereference;
    asked.info = command.error;
    asked.poll = PollId(command.poll);
    asked.bond = BondId(command.bond);
    const Scope scope = command.scope.value_or(history_.settings.default_scope);
    call(
        [&](Step& out) {
          const PlainLock answer = model_.lock(asked, now_, out);
          if (answer.position == 1 && answer.holders.empty()) reached(Rare::behind_a_waiter);
          if (answer.state == LockState::skipped) count_skip(answer.done);
          return answer;
        },
        [&](Effects& out) {
          const PlainLock answer = plain(engine().lock(asked, now_, out));
          invariants_.asked(lane_, who_, scope, command.poll, answer);
          return answer;
        });
    compare_bond(command);
  }

  void break_hold(const RandomCommand& command) {
    const BreakCommand asked{lane_name_, command.error, token_of(command)};
    BreakCommand real = asked;
    real.token = tokens_.to_engine(asked.token);
    call([&](Step& out) { return model_.break_hold(asked, now_, out); },
         [&](Effects& out) { return plain(engine().break_hold(real, now_, out)); });
  }

  void unlock(const RandomCommand& command) {
    UnlockCommand asked{
        .lane = lane_name_, .who = requester_, .token = token_of(command), .success = command.success};
    asked.error = command.error;
    asked.permanent = command.permanent;
    if (command.success) {
      asked.keep = command.keep;
      asked.result = command.result;
    }
    UnlockCommand real = asked;
    real.token = tokens_.to_engine(asked.token);
    const auto count = [&] { return model_.references(lane_name_.resource).count; };
    const bool referenced = count() > 0;
    const bool untold_elsewhere =
        std::ranges::any_of(owed_, [&](const auto& owed) { return owed.second.lane != lane_; });
    call(
        [&](Step& out) {
          const PlainUnlock answer = model_.unlock(asked, now_, out);
          const bool done = command.success && !out.events.empty();
          if (done && referenced && count() == 0) reached(Rare::cleared_references);
          if (done && untold_elsewhere) reached(Rare::voided_untold);
          if (answer.keep && *answer.keep < *command.keep) reached(Rare::keep_cut);
          if (answer.keep == Duration(0) && !out.wakes.empty()) reached(Rare::kept_for_nobody);
          return answer;
        },
        [&](Effects& out) { return plain(engine().unlock(real, now_, out)); });
  }

  void count_skip(const PlainDone& done) {
    if (!done.node.empty() && done.ago > history_.settings.retain_completed) reached(Rare::kept_long);
    const auto& kept = model_.resources().at(lane_.resource).lanes.at(lane_.operation).completion;
    if (!done.result.empty() && (!kept || kept->what.result != done.result)) reached(Rare::old_result);
  }

  void renew(const RandomCommand& command) {
    RenewCommand asked{lane_name_, requester_, token_of(command), command.lease, command.progress};
    RenewCommand real = asked;
    real.token = tokens_.to_engine(asked.token);
    call([&](Step&) { return model_.renew(asked, now_); },
         [&](Effects& out) { return plain(engine().renew(real, now_, out)); });
  }

  void subscribe(const RandomCommand& command) {
    const SubscribeCommand asked{lane_name_, requester_, BondId(command.bond)};
    call([&](Step&) { return model_.subscribe(asked, now_); },
         [&](Effects& out) {
           int positions = 0;
           std::vector<PlainEvent> told;
           for (const Event& event : engine().subscribe(asked, now_, out, [&] { ++positions; }).state)
             told.push_back(plain(event));
           if (positions != 1) throw Mismatch{fmt::format("subscribe took its position {} times", positions)};
           return told;
         });
    compare_bond(command);
  }

  void bond_closes(const RandomCommand& command) {
    const BondId bond = BondId(command.bond);
    call([&](Step&) { return model_.close_bond(lane_name_, requester_, bond, now_), true; },
         [&](Effects& out) { return engine().close_bond(lane_name_, requester_, bond, now_, out), true; });
    compare_bond(command);
  }

  void poll_ends(const RandomCommand& command) {
    const PollId poll = PollId(command.poll);
    if (command.call == Call::break_poll) {
      taken_back([&] {
        call(
            [&](Step&) { return model_.break_poll(lane_name_, requester_, poll, now_), true; },
            [&](Effects& out) { return engine().break_poll(lane_name_, requester_, poll, now_, out), true; });
      });
    } else {
      call([&](Step&) { return model_.end_poll(lane_name_, requester_, poll, now_); },
           [&](Effects& out) -> std::optional<PlainLock> {
             const auto answer = engine().end_poll(lane_name_, requester_, poll, now_, out);
             if (!answer) return std::nullopt;
             return plain(*answer);
           });
    }
    invariants_.poll_gone(command.poll);
  }

  void references(const RandomCommand& command) {
    const ReferenceCommand asked{lane_name_.resource, requester_.node};
    if (command.call == Call::add_reference)
      return call([&](Step&) { return model_.add_reference(asked); },
                  [&](Effects& out) { return plain(engine().add_reference(asked, now_, out)); });
    if (command.call == Call::release_reference)
      return call([&](Step&) { return model_.release_reference(asked); },
                  [&](Effects& out) { return plain(engine().release_reference(asked, now_, out)); });
    call([&](Step&) { return model_.release_node(asked.node); },
         [&](Effects& out) {
           ReleaseNodeWalk walk(asked.node);
           while (!engine().release_node_some(walk, 1, now_, out, [](Effects&) {})) {
           }
           return plain(walk.answer());
         });
  }

  // A crash: the polls are gone with everything else, and so is what had not become durable.
  void reload(const RandomCommand& command) {
    in_batch_ = false;
    count_reload(command);
    owed_.clear();
    size_t records = subject_.sink().records.size();
    ReloadChoice choice = command.reload;
    if (command.lost > 0 && !remembered_.empty()) {
      const Remembered& last =
          remembered_[remembered_.size() - std::min<size_t>(command.lost + 1, remembered_.size())];
      if (last.records < records) reached(Rare::reload_lost_tail);
      model_ = last.model;
      invariants_ = last.invariants;
      tokens_ = last.tokens;
      records = last.records;
      choice = ReloadChoice::history;
    }
    const std::map<std::string, Step> expected = model_.restart(now_);
    invariants_.polls_gone();
    compare_steps(expected, subject_.reload(choice, command.late, records, now_));
    if (model_.next_deadline() <= now_) expire(100);
    compare_everything();
    remembered_.clear();
    remember();
  }

  void count_reload(const RandomCommand& command) {
    if (!owed_.empty()) reached(Rare::reload_untold);
    if (command.lost == 0 && command.late > 0 && command.reload == ReloadChoice::snapshot_and_late_history)
      reached(Rare::reload_late_history);
    for (const auto& [name, resource] : model_.resources())
      for (const auto& [operation, lane] : resource.lanes) {
        if (lane.hold && lane.hold->unclaimed) reached(Rare::reload_unclaimed);
        if (const auto& kept = lane.completion; kept && kept->what.success) {
          if (kept->until > now_ && !kept->what.result.empty()) reached(Rare::reload_kept);
          if (kept->until <= now_ && kept->until > now_ - command.amount) reached(Rare::reload_ran_out);
        }
        for (const Waiter& waiter : lane.waiters)
          if (waiter.grace_until != kNever) reached(Rare::reload_grace);
      }
  }

  // Where a later crash may go back to.
  void remember() {
    if (!loses_tail_) return;
    remembered_.push_back({model_, invariants_, tokens_, subject_.sink().records.size()});
    if (remembered_.size() > 6) remembered_.pop_front();
  }

  void expire(size_t limit) {
    go_on();
    compare_steps(model_.expire(now_), subject_.expire(now_, limit));
    if (engine().next_deadline() <= now_) throw Mismatch{"something is still due after expire"};
    for (const std::string& resource : resources_) compare_resource(resource);
  }

  // One call on both sides: the answer, the events and wakes, what was committed.
  template <class OnModel, class OnEngine>
  void call(OnModel on_model, OnEngine on_engine) {
    Step expected;
    const auto answer = on_model(expected);
    const size_t committed = subject_.sink().events;
    Effects& effects = subject_.effects();
    auto real = on_engine(effects);
    Step step = subject_.take_step();
    if (subject_.sink().events - committed != step.events.size())
      throw Mismatch{"events told are not those committed"};
    if (says()) say("  -> " + show(real));
    heard(step);
    reached(Rare::told_first, compare_step(expected, step));
    tokens_.to_model(real);
    compare("answer", answer, real);
    if constexpr (requires { answer.refusal; }) {
      if (answer.refusal == Refusal::too_many_references) reached(Rare::references_full);
      if (answer.refusal == Refusal::too_many_waiters) reached(Rare::waiters_full);
    }
    if (const Hold* hold = model_.hold(lane_); hold && hold->unclaimed && hold->since == now_) {
      if (hold->claim_until == now_) reached(Rare::zero_claim);
      if (hold->claim_until < now_ + history_.settings.claim_timeout) reached(Rare::silent_waiter);
    }
  }

  // What expiry did, resource by resource: in which order the resources come is the engine's to choose.
  void compare_steps(std::map<std::string, Step> model, std::vector<Step> engine) {
    std::map<std::string, Step> by_resource;
    for (const Step& step : engine) {
      if (step.events.empty() && step.wakes.empty()) continue;
      heard(step);
      if (step.events.empty()) throw Mismatch{"wakes without an event"};
      Step& all = by_resource[step.events[0].lane.resource];
      all.events.insert(all.events.end(), step.events.begin(), step.events.end());
      all.wakes.insert(all.wakes.end(), step.wakes.begin(), step.wakes.end());
    }
    std::erase_if(model,
                  [](const auto& step) { return step.second.events.empty() && step.second.wakes.empty(); });
    for (auto& [resource, step] : by_resource) {
      compare_step(model[resource], step);
      model.erase(resource);
    }
    if (!model.empty()) throw Mismatch{"the model ended something alone:\n" + show(model.begin()->second)};
  }

  void heard(const Step& step) {
    if (says() && (!step.events.empty() || !step.wakes.empty())) say(show(step));
    check(invariants_.step(step));
    for (const PlainEvent& event : step.events) {
      if (event.kind == EventKind::granted && event.attempt > 2) reached(Rare::third_attempt);
      if (event.kind == EventKind::completed && event.attempt > 1) reached(Rare::success_after_failure);
      if (event.kind == EventKind::cancelled && event.reason == "bond" &&
          history_.settings.bond_grace == Duration(0))
        reached(Rare::zero_grace);
      if (event.kind != EventKind::granted) continue;
      if (last_token_ != 0 && event.token > last_token_ + 60'000) reached(Rare::token_block);
      last_token_ = event.token;
    }
  }

  // How many were told that the engine owed an answer from an earlier step.
  size_t compare_step(const Step& expected, Step& step) {
    tokens_.learn(expected, step);
    tokens_.to_model(step);
    Step now = expected;
    std::erase_if(now.wakes, [&](const PlainWake& wake) { return is_late(wake, step); });
    for (const PlainWake& wake : expected.wakes) {
      if (!is_late(wake, step)) continue;
      owed_[wake.poll] = {lane_, wake.answer};
      invariants_.owe(wake.poll);
    }
    size_t told = 0;
    for (const PlainWake& wake : step.wakes)
      if (const auto owed = owed_.find(wake.poll); owed != owed_.end()) {
        now.wakes.push_back({wake.poll, owed->second.answer});
        owed_.erase(owed);
        ++told;
      }
    compare("events and wakes", now, step);
    return told;
  }
  // The engine may tell it later, because it ended with its queue (S34).
  static bool is_late(const PlainWake& wake, const Step& step) {
    const bool ended = wake.answer.state == LockState::skipped || wake.answer.state == LockState::failed;
    return ended && std::ranges::find(step.wakes, wake.poll, &PlainWake::poll) == step.wakes.end();
  }

  // Everybody is told whose wait has ended. Nothing else may happen.
  void go_on() {
    for (const std::string& resource : resources_) {
      for (bool unfinished = true; unfinished;) {
        Effects& effects = subject_.effects();
        engine().go_on(ResourceId(resource), now_, effects);
        unfinished = effects.unfinished;
        Step step = subject_.take_step();
        heard(step);
        reached(Rare::told_late, compare_step({}, step));
      }
    }
    if (!owed_.empty()) throw Mismatch{fmt::format("poll {} was never woken", owed_.begin()->first)};
  }

  void compare_resource(const std::string& resource) {
    std::vector<PlainStatus> raw;
    for (const std::string& operation : operations_) {
      const StatusCommand asked{{OperationName(operation), ResourceId(resource)}, {}};
      PlainStatus real = plain(engine().status(asked, now_, subject_.effects()));
      if (real.queue_length > 32) reached(Rare::indexed_queue);
      raw.push_back(real);
      tokens_.to_model(real);
      compare("status", model_.status(asked, now_), real);
    }
    check(invariants_.after(raw));
    compare("references", model_.references(ResourceId(resource)),
            plain(engine().references({ResourceId(resource), {}, 100}, subject_.effects())));
  }

  void compare_everything() {
    if (!history_.told_late) go_on();
    for (const std::string& resource : resources_) compare_resource(resource);
    // The engine need not wake for a memory that has run out by now: it may have dropped it when it looked.
    const Time deadline = model_.next_deadline(now_);
    if (engine().next_deadline() > deadline)
      throw Mismatch{fmt::format("the engine would sleep until {}, past the deadline at {}",
                                 since_start(engine().next_deadline()), since_start(deadline))};
    Gauges gauges;
    for (const PlainStatus& lane : model_.list(now_)) {
      gauges.held += lane.holder ? 1 : 0;
      gauges.waiting += lane.queue_length;
    }
    if (gauges != subject_.gauges()) throw Mismatch{"the measures do not add up to what is held and waits"};
    const size_t needed = model_.resource_count(now_);
    if (engine().resource_count() < needed) throw Mismatch{"the engine has forgotten a resource"};
    // Not while something is due, or somebody is still to be told.
    const bool settled = model_.next_deadline() > now_ && engine().next_deadline() > now_;
    if (settled && (engine().result_bytes() > 0) != model_keeps_results())
      throw Mismatch{fmt::format("the engine counts {} bytes of results", engine().result_bytes())};
    if (settled && engine().resource_count() > needed + model_.resources_with_bonds())
      throw Mismatch{
          fmt::format("the engine keeps {} resources, {} are needed", engine().resource_count(), needed)};
  }

  bool model_keeps_results() const {
    bool any = false;
    for (const auto& [name, resource] : model_.resources())
      for (const auto& [operation, lane] : resource.lanes) {
        any = any || (lane.completion && !lane.completion->what.result.empty());
        for (const auto& [who, ended] : lane.ended) any = any || (ended.done && !ended.done->result.empty());
      }
    return any;
  }

  void compare_bond(const RandomCommand& command) {
    const BondId bond = BondId(command.bond);
    compare("has_bond", model_.has_bond(lane_name_, requester_, bond),
            engine().has_bond(lane_name_, requester_, bond));
  }

  std::vector<PlainStatus> engine_list() {
    std::vector<PlainStatus> all;
    ListCommand asked{.limit = 3};
    for (Lane last;;) {
      ListWalk walk(asked);
      while (!engine().list_some(walk, 1, now_)) {
      }
      for (const StatusAnswer& one : walk.answer().page) all.push_back(plain(one));
      if (!walk.answer().more) break;
      last = {std::string(walk.answer().next.operation.text), std::string(walk.answer().next.resource.text)};
      asked.after = {OperationName(last.operation), ResourceId(last.resource)};
    }
    std::erase_if(all, [](const PlainStatus& one) { return one.state == LaneState::idle; });
    for (PlainStatus& one : all) tokens_.to_model(one);
    return all;
  }

  template <class T>
  void compare(const char* what, const T& model, const T& real) {
    if (!agrees(model, real))
      throw Mismatch{fmt::format("{}\n  model:  {}\n  engine: {}", what, show(model), show(real))};
  }

  void check(const std::string& broken) {
    if (!broken.empty()) throw Mismatch{"invariant: " + broken};
  }

  void reached(Rare rare, uint64_t times = 1) { rare_[size_t(rare)] += times; }

  bool says() const { return with_trace_ || echo_; }
  void say(const std::string& line) {
    if (with_trace_) trace_ += line + "\n";
    if (echo_) fmt::print(stderr, "{}\n", line);
  }

  Engine& engine() { return subject_.engine(); }

  const RandomHistory& history_;
  std::set<std::string> operations_, resources_;  // that it names
  Model model_;
  Subject subject_;
  Invariants invariants_;
  Tokens tokens_;
  struct Owed {
    Lane lane;
    PlainLock answer;
  };
  std::map<uint64_t, Owed> owed_;  // by poll
  struct Remembered {
    Model model;
    Invariants invariants;
    Tokens tokens;
    size_t records = 0;
  };
  std::deque<Remembered> remembered_;  // after each of the latest commands
  const bool loses_tail_ = std::ranges::any_of(history_.commands, [](const RandomCommand& command) {
    return command.call == Call::reload && command.lost > 0;
  });
  bool in_batch_ = false;
  uint64_t last_token_ = 0;
  RareCounts rare_{};
  Time now_ = kStart;
  Lane lane_;
  Who who_;
  LaneName lane_name_;
  Requester requester_;
  std::string trace_;
  bool with_trace_, echo_;
};

}  // namespace

Outcome run(const RandomHistory& history, bool with_trace, bool echo) {
  return Runner(history, with_trace, echo).run();
}

RandomHistory shrink(RandomHistory history) {
  history.commands.resize(std::min(history.commands.size(), run(history).at + 1));
  for (size_t chunk = std::max<size_t>(history.commands.size() / 2, 1);; chunk /= 2) {
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (size_t from = 0; from + chunk <= history.commands.size();) {
        RandomHistory shorter = history;
        shorter.commands.erase(shorter.commands.begin() + ptrdiff_t(from),
                               shorter.commands.begin() + ptrdiff_t(from + chunk));
        if (run(shorter).mismatch.empty()) {
          ++from;
        } else {
          history = std::move(shorter);
          smaller = true;
        }
      }
    }
    if (chunk <= 1) return history;
  }
}

std::string how_to_repeat(const RandomHistory& history) {
  return fmt::format("TURNSTILE_SEED={} TURNSTILE_LENGTH={}", history.seed, history.length);
}

std::string report(const RandomHistory& history) {
  const RandomHistory small = shrink(history);
  const Outcome outcome = run(small, true);
  return fmt::format("{}: {} of {} commands are enough\nsettings: {}\n{}MISMATCH {}\n",
                     how_to_repeat(history), small.commands.size(), history.commands.size(),
                     show(history.settings), outcome.trace, outcome.mismatch);
}

}  // namespace turnstile::model
