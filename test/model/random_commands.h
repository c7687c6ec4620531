// Random histories as plain data: settings and a list of commands, all from one seed.
//
// A command does not name what only a running server knows (a token, who holds, when the next deadline is)
// but chooses it: "the current token", "whoever holds". The choice is resolved when the command is run. So a
// list from which some commands have been dropped is still a sensible history, which is what makes shrinking
// possible.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "engine/settings.h"

namespace turnstile::model {

// SplitMix64: small, and the same on every machine, which std::uniform_int_distribution is not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // 0 to below - 1.
  uint32_t below(uint32_t limit) { return uint32_t(next() % limit); }
  bool chance(uint32_t percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(uint32_t(from.size()))];
  }

 private:
  uint64_t state_;
};

enum class Call : uint8_t {
  pass_time,
  lock,
  unlock,
  renew,
  cancel,
  status,
  break_hold,
  forget,
  add_reference,
  release_reference,
  release_node,
  subscribe,
  close_bond,
  break_poll,
  end_poll,
  undelivered,
  list,
  reload,
};

enum class Chosen : uint8_t { named, the_holder, the_front_waiter };
enum class TokenChoice : uint8_t { none, current, released, unknown };
enum class TimeChoice : uint8_t { amount, just_before_deadline, at_deadline, after_deadline };
enum class ReloadChoice : uint8_t { history, snapshot, snapshot_and_late_history };

struct RandomCommand {
  Call call{};
  std::string operation, resource;
  Chosen chosen = Chosen::named;
  std::string node, request;  // unless chosen otherwise
  TokenChoice token = TokenChoice::none;
  std::optional<Scope> scope;
  std::optional<Duration> lease;
  std::optional<bool> monitor;
  bool dereference = false;
  bool success = false;
  bool permanent = false;
  std::string error;             // of unlock; the reason of break; the info of lock
  std::optional<Duration> keep;  // of a success (S38)
  std::string result;            // of a success (S39)
  std::optional<Progress> progress;
  uint64_t poll = 0;
  uint64_t bond = 0;
  TimeChoice time = TimeChoice::amount;
  Duration amount{};
  ReloadChoice reload = ReloadChoice::history;
  bool expire_first = true;  // what is due ends before this command; else it may come too late for that
  bool more_follow = false;  // the next command is of the same batch: nothing else happens in between
  uint32_t late = 0;         // reload: how many records are replayed on top of the snapshot
  uint32_t lost = 0;         // reload: how many of the latest commands had not become durable
};

struct RandomHistory {
  uint64_t seed = 0;
  EngineSettings settings;
  size_t length = 0;                        // how many commands were asked for; it may have more
  bool update_requires_no_ref = false;      // in the settings as well, but the model has a table of its own
  std::optional<OperationRules> own_rules;  // likewise
  uint64_t first_token = 0;                 // the server's tokens begin above it
  bool told_late = false;  // S34: who ended with a queue is told when time passes, else after each command
  std::vector<RandomCommand> commands;
};

RandomHistory make_history(uint64_t seed, size_t length);

// Who and what the commands of one history name.
struct Names {
  uint32_t operations = 1, resources = 1;  // the first so many of all
  std::vector<std::string> nodes;
};
RandomCommand make_command(Random& random, const std::vector<RandomCommand>& earlier, const Names& names);
// A few commands that lead to a state which is rarely reached by chance, with others in between
// (random_stories.cc).
void tell_story(Random& random, std::vector<RandomCommand>& commands, const Names& names);
// More requesters in one lane than a queue looks through one by one.
void gather_crowd(Random& random, std::vector<RandomCommand>& commands, Names& names);

Duration some_ms(Random& random, std::initializer_list<int> choices);

std::string show(const EngineSettings& settings);
std::string show(const RandomCommand& command);

// Every operation and resource a history may name.
const std::vector<std::string>& all_operations();
const std::vector<std::string>& all_resources();

}  // namespace turnstile::model
