// Random commands on a few resources, for tests that compare two ways of reaching one state. The comparison
// of the engine with a model of the rules is elsewhere (test/model); here nobody asks whether an answer is
// right.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "engine/test_engine.h"

namespace turnstile {

class RandomWork {
 public:
  RandomWork(TestEngine& engine, uint32_t seed) : t_(engine), random_(seed) {}

  void step() {
    const char* operation = kOperations[below(std::size(kOperations))];
    const char* resource = kResources[below(std::size(kResources))];
    const char* node = kNodes[below(std::size(kNodes))];
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return lock(operation, resource, node);
      case 4:
        t_.succeed_with(operation, resource, holder(operation, resource), keep(), kResults[below(3)]);
        break;
      case 5:
        t_.fail(operation, resource, holder(operation, resource), "random");
        break;
      case 6:
        t_.fail_permanently(operation, resource, holder(operation, resource), "for good");
        break;
      case 7:
        t_.cancel(operation, resource, node);
        break;
      case 8:
        t_.status(operation, resource, node);
        break;
      case 9:
        below(2) ? t_.add_reference(resource, node) : t_.release_reference(resource, node);
        break;
      case 10:
        t_.break_poll(operation, resource, node, below(4));
        break;
      default:
        t_.pass(int64_t(below(4'000)));
        break;
    }
  }

  // What anybody can see of every lane, and each node of itself.
  static std::vector<std::string> look(TestEngine& t) {
    std::vector<std::string> seen;
    for (const char* resource : kResources)
      for (const char* operation : kOperations) {
        const StatusAnswer lane = t.status(operation, resource);
        std::string text = fmt::format("{}/{} state={}", operation, resource, int(lane.state));
        if (lane.holder)
          text += fmt::format(" held by {} #{}", name_of(lane.holder->who), uint64_t(lane.holder->token));
        for (const QueueView& waiter : lane.queue) text += " waits " + name_of(waiter.who);
        if (lane.completion)
          text += fmt::format(" done by {} {:?} {:?}", lane.completion->node.text, lane.completion->error,
                              lane.completion->result);
        for (std::string_view node : lane.references.nodes) text.append(" used by ").append(node);
        for (const char* node : kNodes) {
          const StatusAnswer own = t.status(operation, resource, node);
          text += fmt::format(" {}:{}{}{}{:?}@{}", node, own.acquired, own.completed, own.success, own.error,
                              own.attempt);
          if (own.done) text += fmt::format("{} {:?}", own.done->node.text, own.done->result);
        }
        seen.push_back(text);
      }
    return seen;
  }

 private:
  static constexpr const char* kOperations[] = {"pull", "update", "delete", "once", "job"};
  static constexpr const char* kResources[] = {"r", "s", "t"};
  static constexpr const char* kNodes[] = {"n1", "n2", "n3", "n4"};

  static constexpr const char* kResults[] = {"", "first result", "second result"};

  size_t below(size_t limit) { return random_() % limit; }

  std::string_view holder(const char* operation, const char* resource) {
    const StatusAnswer status = t_.status(operation, resource);
    return status.holder ? status.holder->who.node.text : std::string_view("nobody");
  }

  std::optional<Duration> keep() {
    if (below(2) == 0) return std::nullopt;
    return ms(int64_t(below(3)) * 5'000);
  }

  void lock(const char* operation, const char* resource, const char* node) {
    Ask ask(operation, resource, node);
    if (below(3) == 0) ask.command.scope = Scope::resource;
    if (below(3) == 0) ask.command.lease = ms(int64_t(1000 + below(3) * 1000));
    if (below(4) == 0) ask.command.poll = PollId(1 + below(3));
    if (below(4) == 0) ask.command.monitor = below(2) == 0, ask.command.bond = BondId(1 + below(3));
    ask.command.dereference = below(2) == 0;
    if (below(2) == 0) ask.command.info = "random";
    t_.lock(ask);
  }

  TestEngine& t_;
  std::mt19937 random_;
};

}  // namespace turnstile
