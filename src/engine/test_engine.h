// The engine as its tests like to speak to it: names instead of commands, milliseconds instead of time
// points, and everything that comes out kept until the end of the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/recording_sink_test.h"

namespace turnstile {

constexpr Duration ms(int64_t count) { return std::chrono::milliseconds(count); }

inline LaneName lane_of(std::string_view operation, std::string_view resource) {
  return {OperationName(operation), ResourceId(resource)};
}

inline Requester requester(std::string_view node, std::string_view request = {}) {
  return {NodeId(node), RequestId(request)};
}

// A lock command that is built up in one line: Ask("pull", "r", "n1").scope(Scope::resource).poll(7).
struct Ask {
  LockCommand command;

  Ask(std::string_view operation, std::string_view resource, std::string_view node) {
    command.lane = lane_of(operation, resource);
    command.who = requester(node);
  }
  Ask request(std::string_view id) && { return command.who.request = RequestId(id), *this; }
  Ask scope(Scope scope) && { return command.scope = scope, *this; }
  Ask whole_resource() && { return command.scope = Scope::resource, *this; }
  Ask lease(int64_t count) && { return command.lease = ms(count), *this; }
  Ask monitor(uint64_t bond) && { return command.monitor = true, command.bond = BondId(bond), *this; }
  Ask unmonitored(uint64_t bond = 0) && {
    return command.monitor = false, command.bond = BondId(bond), *this;
  }
  Ask dereference() && { return command.dereference = true, *this; }
  Ask info(std::string_view text) && { return command.info = text, *this; }
  Ask poll(uint64_t id) && { return command.poll = PollId(id), *this; }
};

// A Wake with texts of its own.
struct SeenWake {
  uint64_t poll = 0;
  LockState state{};
  Refusal refusal{};
  Token token{};
  uint32_t attempt = 0;
  std::string previous_error, error;
  std::vector<std::string> references;
  std::string done_by, result;
};

// One engine with its sink, its clock and all that came out of it.
//
// Time: `now` stands still until pass() moves it. Threads: one.
class TestEngine {
 public:
  explicit TestEngine(EngineSettings settings = {}, uint64_t first_token = 0)
      : engine(std::move(settings), sink, Token(first_token)) {}

  // An engine that has been restarted from these facts.
  static std::unique_ptr<TestEngine> load(const std::vector<Record>& facts, Time now,
                                          EngineSettings settings = {}, uint64_t first_token = 0) {
    auto made = std::make_unique<TestEngine>(std::move(settings), first_token);
    made->now = now;
    for (const Record& fact : facts) made->engine.load(fact);
    const auto loaded =
        made->engine.finish_load(now, made->effects(), [&](Effects& out) { made->harvest(out); });
    EXPECT_TRUE(loaded) << loaded.error().message;
    if (loaded) made->loaded = *loaded;
    return made;
  }

  // Calls the engine with effects that live as long as the test, so that every answer can be read at any
  // time.
  template <class Call>
  auto call(Call call) {
    Effects& out = effects();
    auto answer = call(out);
    harvest(out);
    return answer;
  }

  // Lets time go by, stopping at every deadline on the way as a server does.
  void pass(int64_t count) {
    const Time end = now + ms(count);
    for (int steps = 0; engine.next_deadline() <= end; ++steps) {
      ASSERT_LT(steps, 100'000) << "a deadline that has passed does not go away";
      now = std::max(now, engine.next_deadline());
      sweep();
    }
    now = end;
  }
  // One late look at everything that is due at `now`.
  void sweep() {
    engine.expire(now, effects(), SIZE_MAX, [&](Effects& out) { harvest(out); });
  }

  LockAnswer lock(const Ask& ask) {
    return call([&](Effects& out) { return engine.lock(ask.command, now, out); });
  }
  LockAnswer lock(std::string_view operation, std::string_view resource, std::string_view node) {
    return lock(Ask(operation, resource, node));
  }
  UnlockAnswer unlock(const UnlockCommand& command) {
    return call([&](Effects& out) { return engine.unlock(command, now, out); });
  }
  UnlockAnswer succeed(const LaneName& lane, const Requester& who, Token token = Token::none) {
    return unlock({lane, who, token, true, {}, false});
  }
  UnlockAnswer succeed(std::string_view operation, std::string_view resource, std::string_view node,
                       Token token = Token::none) {
    return unlock({lane_of(operation, resource), requester(node), token, true, {}, false});
  }
  UnlockAnswer succeed_with(std::string_view operation, std::string_view resource, std::string_view node,
                            std::optional<Duration> keep, std::string_view result = {}) {
    return unlock(
        {lane_of(operation, resource), requester(node), Token::none, true, {}, false, keep, result});
  }
  UnlockAnswer fail(std::string_view operation, std::string_view resource, std::string_view node,
                    std::string_view error, Token token = Token::none) {
    return unlock({lane_of(operation, resource), requester(node), token, false, error, false});
  }
  UnlockAnswer fail_permanently(std::string_view operation, std::string_view resource, std::string_view node,
                                std::string_view error) {
    return unlock({lane_of(operation, resource), requester(node), Token::none, false, error, true});
  }
  RenewAnswer renew(const RenewCommand& command) {
    return call([&](Effects& out) { return engine.renew(command, now, out); });
  }
  bool cancel(std::string_view operation, std::string_view resource, std::string_view node,
              std::string_view request = {}) {
    const CancelCommand command{lane_of(operation, resource), requester(node, request)};
    return call([&](Effects& out) { return engine.cancel(command, now, out); }).cancelled;
  }
  BreakAnswer break_hold(std::string_view operation, std::string_view resource, std::string_view reason,
                         Token token = Token::none) {
    const BreakCommand command{lane_of(operation, resource), reason, token};
    return call([&](Effects& out) { return engine.break_hold(command, now, out); });
  }
  bool forget(std::string_view operation, std::string_view resource) {
    const ForgetCommand command{lane_of(operation, resource)};
    return call([&](Effects& out) { return engine.forget(command, now, out); }).forgotten;
  }
  // Without a node nobody in particular looks.
  StatusAnswer status(std::string_view operation, std::string_view resource, std::string_view node = {},
                      std::string_view request = {}) {
    const StatusCommand command{lane_of(operation, resource), requester(node, request)};
    return call([&](Effects& out) { return engine.status(command, now, out); });
  }
  // The answer lives as long as the test.
  const ListAnswer& list(const ListCommand& command, size_t most_resources = 1000) {
    ListWalk& walk = lists_.emplace_back(command);
    while (!engine.list_some(walk, most_resources, now)) {
    }
    return walk.answer();
  }

  std::vector<std::string> references(std::string_view resource) {
    const auto answer =
        call([&](Effects& out) { return engine.references({ResourceId(resource), NodeId(), 1000}, out); });
    return {answer.nodes.begin(), answer.nodes.end()};
  }
  ReferencesAnswer add_reference(std::string_view resource, std::string_view node) {
    const ReferenceCommand command{ResourceId(resource), NodeId(node)};
    return call([&](Effects& out) { return engine.add_reference(command, now, out); });
  }
  ReferencesAnswer release_reference(std::string_view resource, std::string_view node) {
    const ReferenceCommand command{ResourceId(resource), NodeId(node)};
    return call([&](Effects& out) { return engine.release_reference(command, now, out); });
  }
  ReferencesAnswer release_node(std::string_view node) {
    ReleaseNodeWalk walk((NodeId(node)));
    while (!engine.release_node_some(walk, 7, now, effects(), [&](Effects& out) { harvest(out); })) {
    }
    return walk.answer();
  }

  std::vector<Event> subscribe(std::string_view operation, std::string_view resource,
                               std::string_view node = {}, uint64_t bond = 0, std::string_view request = {}) {
    const SubscribeCommand command{lane_of(operation, resource), requester(node, request), BondId(bond)};
    return call([&](Effects& out) { return engine.subscribe(command, now, out, [] {}).state; });
  }
  void close_bond(std::string_view operation, std::string_view resource, std::string_view node,
                  uint64_t bond) {
    call([&](Effects& out) {
      engine.close_bond(lane_of(operation, resource), requester(node), BondId(bond), now, out);
      return true;
    });
  }
  bool has_bond(std::string_view operation, std::string_view resource, std::string_view node, uint64_t bond) {
    return engine.has_bond(lane_of(operation, resource), requester(node), BondId(bond));
  }
  void break_poll(std::string_view operation, std::string_view resource, std::string_view node,
                  uint64_t poll) {
    call([&](Effects& out) {
      engine.break_poll(lane_of(operation, resource), requester(node), PollId(poll), now, out);
      return true;
    });
  }
  std::optional<LockAnswer> end_poll(std::string_view operation, std::string_view resource,
                                     std::string_view node, uint64_t poll) {
    return call([&](Effects& out) {
      return engine.end_poll(lane_of(operation, resource), requester(node), PollId(poll), now, out);
    });
  }

  void undelivered(std::string_view operation, std::string_view resource, std::string_view node,
                   Token token) {
    call([&](Effects& out) {
      engine.undelivered(lane_of(operation, resource), requester(node), token, now, out);
      return true;
    });
  }

  // Who holds the lane, as "n1" or "n1/request"; empty: nobody. Does not claim a grant.
  std::string holder(std::string_view operation, std::string_view resource) {
    const StatusAnswer answer = status(operation, resource);
    return answer.holder ? name_of(answer.holder->who) : std::string();
  }
  // Who waits in the lane, in order.
  std::vector<std::string> queue(std::string_view operation, std::string_view resource) {
    std::vector<std::string> names;
    for (const QueueView& waiter : status(operation, resource).queue) names.push_back(name_of(waiter.who));
    return names;
  }

  // What has happened since the last time this was asked.
  std::vector<std::string> take_events() {
    std::vector<std::string> texts;
    for (; events_taken_ < sink.log.events.size(); ++events_taken_)
      texts.push_back(text_of(sink.log.events[events_taken_]));
    return texts;
  }
  Event last_event() const {
    EXPECT_FALSE(sink.log.events.empty()) << "nothing has happened";
    return sink.log.events.empty() ? Event() : sink.log.events.back();
  }
  // The one answer that this poll got.
  SeenWake wake(uint64_t poll) const {
    const auto is_it = [&](const SeenWake& each) { return each.poll == poll; };
    EXPECT_EQ(std::count_if(wakes.begin(), wakes.end(), is_it), 1) << "poll " << poll;
    const auto found = std::find_if(wakes.begin(), wakes.end(), is_it);
    return found == wakes.end() ? SeenWake() : *found;
  }

  // For calls by the ten thousand, whose answers nobody reads later.
  Effects& scratch() {
    scratch_.clear();
    return scratch_;
  }

  OwnedLog dump() {
    OwnedLog facts;
    engine.dump([&](const Record& record) { facts.add(record); });
    return facts;
  }
  // The whole state as sorted lines; without the token counter, which may differ between equal states, and
  // without what has run out and only waits to be dropped.
  std::vector<std::string> facts() {
    std::vector<std::string> lines;
    const OwnedLog all = dump();
    for (const Record& record : all.records) {
      const bool retained = record.kind == RecordKind::completion_set ||
                            record.kind == RecordKind::released_set || record.kind == RecordKind::ending_set;
      if (record.kind == RecordKind::token_mark || (retained && record.until <= now)) continue;
      lines.push_back(text_of(record));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  RecordingSink sink;
  Engine engine;
  Time now{ms(1'000'000)};  // not zero, which is what an unset time would be
  std::vector<SeenWake> wakes;
  Engine::Loaded loaded;

 private:
  Effects& effects() { return effects_.emplace_back(); }

  void harvest(const Effects& out) {
    for (const Wake& each : out.wakes) {
      const LockAnswer& answer = each.answer;
      wakes.push_back({uint64_t(each.poll),
                       answer.state,
                       answer.refusal,
                       answer.token,
                       answer.attempt,
                       std::string(answer.previous_error),
                       std::string(answer.error),
                       {answer.references.nodes.begin(), answer.references.nodes.end()},
                       std::string(answer.done ? answer.done->node.text : std::string_view()),
                       std::string(answer.done ? answer.done->result : std::string_view())});
    }
  }

  Effects scratch_;
  std::deque<Effects> effects_;
  std::deque<ListWalk> lists_;
  size_t events_taken_ = 0;
};

// For readable messages of gtest.
inline void PrintTo(Token token, std::ostream* out) { *out << "token " << uint64_t(token); }
inline void PrintTo(LockState state, std::ostream* out) {
  constexpr const char* kNames[] = {"acquired", "queued", "skipped", "refused", "failed", "cancelled"};
  *out << kNames[size_t(state)];
}

}  // namespace turnstile
