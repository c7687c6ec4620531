// One call after the other, on both sides, and the comparison after each.
#include "history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

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
        model_(history.settings),
        subject_(history.settings, history.first_token),
        invariants_(history.first_token),
        with_trace_(with_trace),
        echo_(echo) {}

  Outcome run() {
    Outcome outcome;
    try {
      for (; outcome.at < history_.commands.size(); ++outcome.at)
        one(history_.commands[outcome.at], outcome.at);
      compare_everything();
    } catch (const Mismatch& mismatch) {
      outcome.mismatch = mismatch.what;
    }
    outcome.trace_hash = hash_;
    outcome.trace = std::move(trace_);
    return outcome;
  }

 private:
  void one(const RandomCommand& command, size_t index) {
    if (command.call == Call::pass_time) now_ = time_of(command);
    if (command.call == Call::reload) now_ += command.amount;
    say(fmt::format("{} @{} {}", index, since_start(now_), show(command)));
    if (command.call == Call::reload) return reload(command);
    if (command.call == Call::pass_time) go_on();
    if (command.expire_first && model_.next_deadline() <= now_) expire(1 + index % 3);
    if (command.call == Call::pass_time) return;
    resolve(command);
    dispatch(command);
    if (!history_.told_late) go_on();
    compare_resource(command.resource);
    if (index % 8 == 7) compare_everything();
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
        return call(
            [&](Step& out) { return model_.break_hold({lane_name_, command.error}, now_, out); },
            [&](Effects& out) { return plain(engine().break_hold({lane_name_, command.error}, now_, out)); });
      case Call::list:
        return compare("list", model_.list(now_), engine_list());
      case Call::subscribe:
        return subscribe(command);
      case Call::close_bond:
        return bond_closes(command);
      case Call::undelivered: {
        const Token token = token_of(command);
        return call(
            [&](Step&) { return model_.undelivered(lane_name_, requester_, token, now_), true; },
            [&](Effects& out) {
              return engine().undelivered(lane_name_, requester_, tokens_.to_engine(token), now_, out), true;
            });
      }
      case Call::break_poll:
      case Call::end_poll:
        return poll_ends(command);
      default:
        return references(command);
    }
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
    call([&](Step& out) { return model_.lock(asked, now_, out); },
         [&](Effects& out) {
           const PlainLock answer = plain(engine().lock(asked, now_, out));
           invariants_.asked(lane_, who_, scope, command.poll, answer);
           return answer;
         });
    compare_bond(command);
  }

  void unlock(const RandomCommand& command) {
    UnlockCommand asked{
        .lane = lane_name_, .who = requester_, .token = token_of(command), .success = command.success};
    asked.error = command.error;
    asked.permanent = command.permanent;
    UnlockCommand real = asked;
    real.token = tokens_.to_engine(asked.token);
    call([&](Step& out) { return model_.unlock(asked, now_, out); },
         [&](Effects& out) { return plain(engine().unlock(real, now_, out)); });
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
           for (const Event& event : engine().subscribe(asked, now_, out, [&] { ++positions; }))
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
      call([&](Step&) { return model_.break_poll(lane_name_, requester_, poll, now_), true; },
           [&](Effects& out) { return engine().break_poll(lane_name_, requester_, poll, now_, out), true; });
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

  void reload(const RandomCommand& command) {
    owed_.clear();  // a crash in between: the polls are gone with everything else
    model_.restart(now_);
    invariants_.polls_gone();
    compare_steps({}, subject_.reload(command.reload, command.late, now_));
    if (model_.next_deadline() <= now_) expire(100);
    compare_everything();
  }

  void expire(size_t limit) {
    go_on();
    compare_steps(model_.expire(now_), subject_.expire(now_, limit));
    if (engine().next_deadline() <= now_) throw Mismatch{"something is still due after expire"};
    for (const std::string& resource : all_resources()) compare_resource(resource);
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
    say("  -> " + show(real));
    heard(step);
    compare_step(expected, step);
    tokens_.to_model(real);
    compare("answer", answer, real);
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
    if (!step.events.empty() || !step.wakes.empty()) say(show(step));
    check(invariants_.step(step));
  }

  void compare_step(const Step& expected, Step& step) {
    tokens_.learn(expected, step);
    tokens_.to_model(step);
    Step now = expected;
    std::erase_if(now.wakes, [&](const PlainWake& wake) { return is_late(wake, step); });
    for (const PlainWake& wake : expected.wakes) {
      if (!is_late(wake, step)) continue;
      owed_[wake.poll] = wake.answer;
      invariants_.owe(wake.poll);
    }
    for (const PlainWake& wake : step.wakes)
      if (const auto owed = owed_.find(wake.poll); owed != owed_.end()) {
        now.wakes.push_back({wake.poll, owed->second});
        owed_.erase(owed);
      }
    compare("events and wakes", now, step);
  }
  // The engine may tell it later, because it ended with its queue (S34).
  static bool is_late(const PlainWake& wake, const Step& step) {
    const bool ended = wake.answer.state == LockState::skipped || wake.answer.state == LockState::failed;
    return ended && std::ranges::find(step.wakes, wake.poll, &PlainWake::poll) == step.wakes.end();
  }

  // Everybody is told whose wait has ended. Nothing else may happen.
  void go_on() {
    for (const std::string& resource : all_resources()) {
      for (bool unfinished = true; unfinished;) {
        Effects& effects = subject_.effects();
        engine().go_on(ResourceId(resource), now_, effects);
        unfinished = effects.unfinished;
        Step step = subject_.take_step();
        heard(step);
        compare_step({}, step);
      }
    }
    if (!owed_.empty()) throw Mismatch{fmt::format("poll {} was never woken", owed_.begin()->first)};
  }

  void compare_resource(const std::string& resource) {
    std::vector<PlainStatus> raw;
    for (const std::string& operation : all_operations()) {
      const StatusCommand asked{{OperationName(operation), ResourceId(resource)}, {}};
      PlainStatus real = plain(engine().status(asked, now_, subject_.effects()));
      raw.push_back(real);
      tokens_.to_model(real);
      compare("status", model_.status(asked, now_), real);
    }
    check(invariants_.after(raw));
    compare("references", model_.references(ResourceId(resource)),
            plain(engine().references({ResourceId(resource), {}, 100}, subject_.effects())));
  }

  void compare_everything() {
    go_on();
    for (const std::string& resource : all_resources()) compare_resource(resource);
    if (engine().next_deadline() > model_.next_deadline())
      throw Mismatch{fmt::format("the engine would sleep until {}, past the deadline at {}",
                                 since_start(engine().next_deadline()), since_start(model_.next_deadline()))};
    Gauges gauges;
    for (const PlainStatus& lane : model_.list(now_)) {
      gauges.held += lane.holder ? 1 : 0;
      gauges.waiting += lane.queue_length;
    }
    if (gauges != subject_.gauges()) throw Mismatch{"the measures do not add up to what is held and waits"};
    const size_t needed = model_.resource_count(now_);
    if (engine().resource_count() < needed) throw Mismatch{"the engine has forgotten a resource"};
    if (model_.next_deadline() > now_ && engine().resource_count() > needed + model_.resources_with_bonds())
      throw Mismatch{
          fmt::format("the engine keeps {} resources, {} are needed", engine().resource_count(), needed)};
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

  void say(const std::string& line) {
    hash_ = xxh3_64(fmt::format("{:x}", hash_) + line);
    if (with_trace_) trace_ += line + "\n";
    if (echo_) fmt::print(stderr, "{}\n", line);
  }

  Engine& engine() { return subject_.engine(); }

  const RandomHistory& history_;
  Model model_;
  Subject subject_;
  Invariants invariants_;
  Tokens tokens_;
  std::map<uint64_t, PlainLock> owed_;  // by poll
  Time now_ = kStart;
  Lane lane_;
  Who who_;
  LaneName lane_name_;
  Requester requester_;
  uint64_t hash_ = 0;
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

std::string report(const RandomHistory& history) {
  const RandomHistory small = shrink(history);
  const Outcome outcome = run(small, true);
  return fmt::format(
      "seed {} (replay: TURNSTILE_SEED={}), {} of {} commands are enough\nsettings: {}\n{}MISMATCH {}\n",
      history.seed, history.seed, small.commands.size(), history.commands.size(), show(history.settings),
      outcome.trace, outcome.mismatch);
}

}  // namespace turnstile::model
