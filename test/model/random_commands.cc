// How likely each command is. Few names, so that requests meet; time-outs of a few milliseconds beside steps
// of the same size, so that everything runs out now and then; rare things rare, so that states build up.
#include "random_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace turnstile::model {
namespace {

using std::chrono::milliseconds;

const std::vector<std::string> kNodes = {"n1", "n2", "n3", "n4"};
const std::vector<std::string> kRequests = {"", "", "", "a", "b"};
const std::vector<std::string> kResults = {"", "r1", "r2"};
const std::vector<std::string> kErrors = {"", "disk full", "404"};

OperationRules custom_rules(Random& random) {
  return {random.chance(80) ? "custom" : "update", random.chance(50) ? OnSuccess::share : OnSuccess::handoff,
          OnReferences(random.below(3)), Guard(random.below(3)), random.chance(50)};
}

void make_settings(Random& random, RandomHistory& history) {
  EngineSettings& settings = history.settings;
  settings.default_scope = random.chance(30) ? Scope::resource : Scope::operation;
  settings.server_keeps_references = random.chance(80);
  settings.allow_multi_node_download = random.chance(93);
  settings.retain_completed = some_ms(random, {0, 5, 50, 1000});
  settings.retain_permanent_failure = some_ms(random, {0, 5, 50});
  settings.max_keep = some_ms(random, {3, 60, 100'000});
  settings.retain_released = some_ms(random, {0, 5, 50, 1000});
  settings.claim_timeout = random.chance(4) ? Duration(0) : some_ms(random, {3, 10, 40});
  settings.shortest_claim = some_ms(random, {1, 5});
  settings.bond_grace = random.chance(4) ? Duration(0) : some_ms(random, {2, 7, 25});
  settings.restored_bond_grace = some_ms(random, {0, 0, 10, 60});
  settings.max_hold = some_ms(random, {0, 20, 100, 1000});
  settings.stall_timeout = some_ms(random, {0, 0, 6, 30});
  settings.max_queue = random.chance(15) ? 2 : 100;
  if (random.chance(10)) settings.max_waiters = 1 + random.below(4);
  if (random.chance(15)) settings.max_references = 1 + random.below(3);
  settings.shards = 1 + random.below(3);
  settings.most_told = 1 + random.below(3);
  history.update_requires_no_ref = random.chance(40);
  settings.operations = default_operations(history.update_requires_no_ref);
  if (!random.chance(40)) return;
  history.own_rules = custom_rules(random);
  std::erase_if(settings.operations,
                [&](const OperationRules& rules) { return rules.name == history.own_rules->name; });
  settings.operations.push_back(*history.own_rules);
}

void choose_lock(Random& random, RandomCommand& command, size_t index) {
  if (random.chance(30)) command.scope = random.chance(50) ? Scope::resource : Scope::operation;
  if (random.chance(30)) command.lease = some_ms(random, {4, 15, 60});
  if (random.chance(35)) command.monitor = random.chance(75);
  command.bond =
      1 + random.below(4);  // the connection, which serves many requests; the server always has one
  if (random.chance(35)) command.poll = index + 1;
  command.dereference = random.chance(25);
  if (random.chance(20)) command.error = random.chance(50) ? "first" : "second";
  if (random.chance(20)) command.chosen = random.chance(50) ? Chosen::the_holder : Chosen::the_front_waiter;
}

void choose_unlock(Random& random, RandomCommand& command) {
  if (random.chance(85)) command.chosen = Chosen::the_holder;
  const uint32_t token = random.below(10);
  command.token = token < 6   ? TokenChoice::current
                  : token < 8 ? TokenChoice::none
                  : token < 9 ? TokenChoice::released
                              : TokenChoice::unknown;
  command.success = random.chance(55);
  if (!command.success || random.chance(10)) command.error = random.pick(kErrors);
  command.permanent = random.chance(15);
  if (!command.success) return;
  if (random.chance(40)) command.keep = some_ms(random, {0, 2, 20, 200, 5000});
  command.result = random.pick(kResults);
}

void choose_time(Random& random, RandomCommand& command) {
  command.call = Call::pass_time;
  const uint32_t choice = random.below(10);
  if (choice < 4) {
    command.amount = some_ms(random, {0, 1, 2, 3, 5});
  } else if (choice < 5) {
    command.amount = some_ms(random, {20, 100, 2000});
  } else {
    command.time = choice < 6   ? TimeChoice::just_before_deadline
                   : choice < 8 ? TimeChoice::at_deadline
                                : TimeChoice::after_deadline;
    command.amount = some_ms(random, {1, 4});
  }
}

// A bond or poll that an earlier command has opened, with the lane and requester it was opened for.
void choose_open(Random& random, RandomCommand& command, const std::vector<RandomCommand>& earlier) {
  const bool poll = command.call != Call::close_bond;
  std::vector<const RandomCommand*> open;
  for (const RandomCommand& other : earlier)
    if (other.chosen == Chosen::named &&
        (poll ? other.poll != 0 : other.bond != 0 && other.call != Call::close_bond))
      open.push_back(&other);
  if (open.empty()) return;
  const size_t recent = std::min<size_t>(open.size(), 6);
  const RandomCommand& other = *open[open.size() - 1 - random.below(uint32_t(recent))];
  command.operation = other.operation;
  command.resource = other.resource;
  command.node = other.node;
  command.request = other.request;
  command.poll = other.poll;
  command.bond = other.bond;
}

}  // namespace

Duration some_ms(Random& random, std::initializer_list<int> choices) {
  return milliseconds(std::data(choices)[random.below(uint32_t(choices.size()))]);
}

RandomCommand make_command(Random& random, const std::vector<RandomCommand>& earlier, const Names& names) {
  const size_t index = earlier.size();
  RandomCommand command;
  command.operation = all_operations()[random.below(names.operations)];
  command.resource = all_resources()[random.below(names.resources)];
  command.node = random.pick(names.nodes);
  command.request = random.pick(kRequests);
  const uint32_t choice = random.below(203);
  if (choice < 72) {
    command.call = Call::lock;
    choose_lock(random, command, index);
  } else if (choice < 102) {
    command.call = Call::unlock;
    choose_unlock(random, command);
  } else if (choice < 127) {
    choose_time(random, command);
  } else if (choice < 137) {
    command.call = Call::renew;
    choose_unlock(random, command);
    if (random.chance(30)) command.lease = some_ms(random, {4, 15, 60});
    if (random.chance(60)) command.progress = Progress{random.below(3), 2};
  } else if (choice < 143) {
    command.call = Call::cancel;
    const uint32_t who = random.below(4);
    command.chosen = who == 0 ? Chosen::named : who == 1 ? Chosen::the_holder : Chosen::the_front_waiter;
  } else if (choice < 151) {
    command.call = Call::status;
    if (random.chance(40)) command.chosen = random.chance(70) ? Chosen::the_holder : Chosen::the_front_waiter;
  } else if (choice < 154) {
    command.call = Call::break_hold;
    command.error = "by hand";
    if (random.chance(50)) command.token = random.chance(60) ? TokenChoice::current : TokenChoice::unknown;
  } else if (choice < 160) {
    command.call = Call::add_reference;
  } else if (choice < 165) {
    command.call = Call::release_reference;
  } else if (choice < 167) {
    command.call = Call::release_node;
  } else if (choice < 175) {
    command.call = Call::subscribe;
    command.bond = 1000 + index;
    if (random.chance(15)) command.node = command.request = "";
    if (!command.node.empty() && random.chance(50))
      command.chosen = random.chance(50) ? Chosen::the_holder : Chosen::the_front_waiter;
  } else if (choice < 185) {
    command.call = Call::close_bond;
    choose_open(random, command, earlier);
  } else if (choice < 190) {
    command.call = Call::break_poll;
    choose_open(random, command, earlier);
  } else if (choice < 194) {
    command.call = Call::end_poll;
    choose_open(random, command, earlier);
  } else if (choice < 195) {
    command.call = Call::list;
  } else if (choice < 197) {
    command.call = Call::undelivered;
    if (random.chance(90)) command.chosen = Chosen::the_holder;
    command.token = random.chance(90) ? TokenChoice::current : TokenChoice::unknown;
  } else if (choice < 200) {
    command.call = Call::reload;
    command.reload = ReloadChoice(random.below(3));
    command.late = random.below(30);
    command.amount = some_ms(random, {0, 1, 30});
    if (random.chance(40)) command.lost = 1 + random.below(5);
  } else {
    command.call = Call::forget;
  }
  return command;
}

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

const std::vector<std::string>& all_operations() {
  static const std::vector<std::string> names = {"pull", "delete", "update", "once", "custom"};
  return names;
}

const std::vector<std::string>& all_resources() {
  static const std::vector<std::string> names = {"layer", "pull:layer", "x"};
  return names;
}

RandomHistory make_history(uint64_t seed, size_t length) {
  Random random(seed);
  RandomHistory history{.seed = seed, .length = length};
  make_settings(random, history);
  Names names{1 + random.below(5), 1 + random.below(random.chance(50) ? 1 : 3), kNodes};
  std::vector<RandomCommand>& commands = history.commands;
  if (random.chance(4)) {
    history.settings.max_queue = 100;
    history.settings.max_waiters = 1000;
    history.settings.allow_multi_node_download = true;
    gather_crowd(random, commands, names);
    length += commands.size();
  }
  while (commands.size() < length) {
    if (random.chance(3))
      tell_story(random, commands, names);
    else
      commands.push_back(make_command(random, commands, names));
  }
  if (random.chance(10))
    for (RandomCommand& command : commands) command.expire_first = random.chance(40);
  if (random.chance(10))
    for (RandomCommand& command : commands) command.more_follow = random.chance(60);
  history.told_late = random.chance(50);
  // Now and then so that the history passes the end of a block of tokens.
  if (random.chance(20)) history.first_token = (uint64_t(1) << 16) - random.below(5);
  return history;
}

std::string show(const EngineSettings& settings) {
  std::string out = fmt::format(
      "scope={} references={} multi={} retain_completed={} retain_permanent_failure={} retain_released={} "
      "claim_timeout={} bond_grace={} max_hold={} stall_timeout={} max_queue={} max_waiters={} "
      "max_references={} max_keep={}",
      settings.default_scope == Scope::resource ? "resource" : "operation",
      settings.server_keeps_references ? "server" : "client", settings.allow_multi_node_download,
      settings.retain_completed.count(), settings.retain_permanent_failure.count(),
      settings.retain_released.count(), settings.claim_timeout.count(), settings.bond_grace.count(),
      settings.max_hold.count(), settings.stall_timeout.count(), settings.max_queue, settings.max_waiters,
      settings.max_references, settings.max_keep.count());
  for (const OperationRules& rules : settings.operations)
    out += fmt::format(" {}[{} references={} guard={}{}]", rules.name,
                       rules.on_success == OnSuccess::share ? "share" : "handoff",
                       std::array<const char*, 3>{"add", "keep", "clear"}[size_t(rules.references)],
                       std::array<const char*, 3>{"none", "skip", "refuse"}[size_t(rules.guard)],
                       rules.voids ? " voids" : "");
  return out;
}

std::string show(const RandomCommand& command) {
  constexpr const char* kCalls[] = {"pass_time",    "lock",       "unlock",     "renew",      "cancel",
                                    "status",       "break_hold", "forget",     "add_ref",    "release_ref",
                                    "release_node", "subscribe",  "close_bond", "break_poll", "end_poll",
                                    "undelivered",  "list",       "reload"};
  constexpr const char* kChosen[] = {"", "holder:", "front:"};
  constexpr const char* kTokens[] = {"", " token=current", " token=released", " token=unknown"};
  constexpr const char* kTimes[] = {"", " just before the deadline", " at the deadline",
                                    " after the deadline"};
  constexpr const char* kReloads[] = {" from history", " from a snapshot",
                                      " from a snapshot and late history"};
  std::string out = kCalls[size_t(command.call)];
  if (command.call == Call::pass_time)
    return out + kTimes[size_t(command.time)] + fmt::format(" {}us", command.amount.count());
  if (command.call == Call::reload)
    return out + (command.lost > 0 ? fmt::format(" without the last {}", command.lost)
                                   : kReloads[size_t(command.reload)] + fmt::format(" {}", command.late));
  out += fmt::format(" {}:{} {}{}", command.operation, command.resource, kChosen[size_t(command.chosen)],
                     command.node);
  if (!command.request.empty()) out += "#" + command.request;
  out += kTokens[size_t(command.token)];
  if (command.scope) out += *command.scope == Scope::resource ? " scope=resource" : " scope=operation";
  if (command.lease) out += fmt::format(" lease={}", command.lease->count());
  if (command.monitor) out += fmt::format(" monitor={}", *command.monitor);
  if (command.dereference) out += " dereference";
  if (command.call == Call::unlock) out += command.success ? " success" : " failure";
  if (command.permanent) out += " permanent";
  if (command.keep) out += fmt::format(" keep={}", command.keep->count());
  if (!command.result.empty()) out += " result=" + command.result;
  if (!command.error.empty()) out += fmt::format(" \"{}\"", command.error);
  if (command.progress)
    out += fmt::format(" progress={}/{}", command.progress->done, command.progress->total);
  if (command.poll != 0) out += fmt::format(" poll={}", command.poll);
  if (command.bond != 0) out += fmt::format(" bond={}", command.bond);
  if (command.more_follow) out += " +";
  return out;
}

}  // namespace turnstile::model
