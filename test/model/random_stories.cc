// Ways into states that random commands reach once in ten thousand histories: an answer that reached nobody,
// a queue that ended while some had not heard of it, a waiter that has long been silent, a long queue. Each
// leaves open who, with what and what next, and other commands come in between.
#include "random_commands.h"

namespace turnstile::model {
namespace {

class Story {
 public:
  Story(Random& random, std::vector<RandomCommand>& commands, const Names& names)
      : random_(random), commands_(commands), names_(names) {
    operation_ = all_operations()[random.below(names.operations)];
    resource_ = all_resources()[random.below(names.resources)];
    first_ = random.below(uint32_t(names.nodes.size()));
  }

  bool chance(uint32_t percent) { return random_.chance(percent); }
  uint32_t below(uint32_t limit) { return random_.below(limit); }
  // Those of the story by number; the same number is the same node.
  const std::string& node(uint32_t number) { return names_.nodes[(first_ + number) % names_.nodes.size()]; }
  const std::string& operation() const { return operation_; }
  void operation(std::string name) { operation_ = std::move(name); }

  // Valid until the next one.
  RandomCommand& say(Call call, uint32_t number = 0) {
    while (chance(12)) commands_.push_back(make_command(random_, commands_, names_));
    RandomCommand command{.call = call, .operation = operation_, .resource = resource_};
    command.node = node(number);
    if (call == Call::lock) command.bond = 1 + below(4);
    if (call == Call::subscribe) command.bond = 1000 + commands_.size();
    commands_.push_back(command);
    return commands_.back();
  }
  // With a long poll, whose number is returned.
  uint64_t poll(uint32_t number) { return say(Call::lock, number).poll = commands_.size(); }
  RandomCommand& holder(Call call) {
    RandomCommand& command = say(call);
    command.chosen = Chosen::the_holder;
    command.token = TokenChoice::current;
    return command;
  }
  RandomCommand& unlock(bool success, bool permanent = false) {
    RandomCommand& command = holder(Call::unlock);
    command.success = success;
    command.permanent = permanent;
    if (!success) command.error = "story";
    if (success && chance(50)) command.result = chance(50) ? "r1" : "r2";
    return command;
  }
  void deadline() {
    say(Call::pass_time).time = chance(50) ? TimeChoice::at_deadline : TimeChoice::after_deadline;
  }
  void pass(Duration amount) { say(Call::pass_time).amount = amount; }

 private:
  Random& random_;
  std::vector<RandomCommand>& commands_;
  const Names& names_;
  std::string operation_, resource_;
  uint32_t first_ = 0;
};

// S36, and what shows before that the holder knows.
void grant_that_reaches_nobody(Story& story) {
  story.say(Call::lock, 0);
  const uint64_t poll = story.poll(1);
  if (story.chance(30)) story.poll(1);
  if (story.chance(50)) story.say(Call::lock, 2);
  story.unlock(false);
  switch (story.below(6)) {
    case 0:
      story.holder(Call::status);
      break;
    case 1:
      story.holder(Call::renew);
      break;
    case 2:
      story.holder(Call::subscribe);
      break;
    case 3:
      story.holder(Call::lock);
      break;
    default:
      break;
  }
  if (story.chance(60))
    story.holder(Call::undelivered);
  else
    story.say(Call::break_poll, 1).poll = poll;
  if (story.chance(30)) story.holder(Call::undelivered);
  if (story.chance(15)) story.say(Call::reload).reload = ReloadChoice(story.below(3));
  story.deadline();
}

// S34: who asks before it was told; S13: what voids it before.
void queue_that_ends(Story& story) {
  story.say(Call::lock, 0);
  uint64_t last_poll = 0;
  uint32_t polls = 1;  // who has it
  const uint32_t waiters = 2 + story.below(3);
  for (uint32_t i = 1; i <= waiters; ++i) {
    if (story.chance(70))
      last_poll = story.poll(polls = i);
    else
      story.say(Call::lock, i);
    if (story.chance(20)) story.say(Call::subscribe, i);
  }
  const bool success = story.chance(70);
  story.unlock(success, !success);
  const std::string own = story.operation();
  for (uint32_t more = 1 + story.below(3); more > 0; --more) {
    const uint32_t who = waiters - story.below(2);  // the last are told last
    switch (story.below(10)) {
      case 0:
        story.say(Call::status, who);
        break;
      case 1:
        story.say(Call::lock, who);
        break;
      case 2:
      case 3:
        story.say(Call::subscribe, who);
        break;
      case 4:
        story.say(Call::end_poll, polls).poll = last_poll;
        break;
      case 5:
        story.say(Call::break_poll, polls).poll = last_poll;
        break;
      case 6:
        story.say(Call::release_reference, who);
        break;
      case 7:
      case 8:
        story.operation(all_operations()[story.below(5)]);
        story.say(Call::lock, who).scope = Scope::operation;
        story.unlock(true);
        story.operation(own);
        break;
      default:
        story.say(Call::reload).reload = ReloadChoice(story.below(3));
    }
  }
}

// S34: the second ends before all of the first are told; then S13, and a restart that must not undo it.
void queues_that_end_one_after_the_other(Story& story) {
  const std::string own = story.chance(70) ? "delete" : "pull", other = story.chance(70) ? "update" : "pull";
  const auto void_what_is_kept = [&] {
    story.operation(other);
    story.say(Call::lock, 1).scope = Scope::operation;
    story.unlock(true);
    story.operation(own);
  };
  story.operation(own);
  story.say(Call::lock, 0);
  for (uint32_t i = 1; i < 4; ++i) story.say(Call::lock, i);
  const bool success = story.chance(60);
  story.unlock(success, !success);
  if (success) void_what_is_kept();
  story.say(Call::lock, 0);
  story.say(Call::lock, 3);
  story.unlock(true);
  void_what_is_kept();
  if (story.chance(70)) story.say(Call::reload).reload = ReloadChoice(story.below(3));
  story.say(story.chance(50) ? Call::lock : Call::status, 3);
}

// S35, S21.
void waiter_that_is_silent(Story& story) {
  story.say(Call::lock, 0);
  const uint64_t poll = story.chance(50) ? story.poll(1) : (story.say(Call::lock, 1), 0);
  if (poll != 0) story.say(story.chance(50) ? Call::end_poll : Call::break_poll, 1).poll = poll;
  if (story.chance(50)) story.say(Call::lock, 2);
  if (story.chance(60)) story.pass(std::chrono::milliseconds(story.chance(50) ? 10 : 41));
  if (story.chance(40)) story.say(story.chance(50) ? Call::subscribe : Call::status, 1);
  if (story.chance(30)) story.poll(1);
  if (story.chance(20)) story.say(Call::reload).reload = ReloadChoice(story.below(3));
  if (story.chance(50)) story.deadline();
  story.unlock(false);
  story.deadline();
}

// S19 at the moment of the grant; references that are cleared, and the limit afterwards.
void references_that_go(Story& story) {
  if (story.chance(50)) {
    story.operation("pull");
    story.say(Call::lock, 0).scope = Scope::resource;
    story.operation("delete");
    story.say(Call::lock, 1).dereference = true;
    for (uint32_t i = 1 + story.below(2); i < 3; ++i) story.say(Call::add_reference, i);
    story.operation("pull");
    story.unlock(false);
    return;
  }
  story.operation("delete");
  story.say(Call::lock, 0).scope = Scope::operation;
  story.operation("pull");
  story.say(Call::lock, 1).scope = Scope::operation;
  story.unlock(true);
  story.operation("delete");
  story.unlock(true);
  for (uint32_t i = 0; i < 3; ++i) story.say(Call::add_reference, i);
}

// S7: who waits behind a waiter of another lane, and how that one goes.
void waiter_behind_a_waiter(Story& story) {
  const std::string first = all_operations()[story.below(5)], second = all_operations()[story.below(5)];
  story.operation(first);
  story.say(Call::lock, 0).scope = Scope::operation;
  const uint64_t poll = story.poll(1);
  story.operation(second);
  story.say(Call::lock, 2).scope = Scope::resource;
  story.operation(all_operations()[story.below(5)]);
  story.say(Call::lock, 3);
  story.operation(second);
  if (story.chance(50))
    story.say(Call::cancel, 2);
  else
    story.deadline();
  story.operation(first);
  story.say(Call::break_poll, 1).poll = poll;
  story.unlock(story.chance(50));
}

// S38 to S40: a success that says for how long it counts, and who asks before and after that.
void success_that_is_kept(Story& story) {
  if (story.chance(60)) story.operation("once");
  const std::string own = story.operation();
  story.say(Call::lock, 0);
  if (story.chance(50)) story.poll(1);
  if (story.chance(50)) story.say(Call::lock, 2);
  story.unlock(true).keep = std::chrono::milliseconds(story.chance(50) ? 1 : 80);
  for (uint32_t more = 1 + story.below(4); more > 0; --more) {
    switch (story.below(9)) {
      case 0:
        story.say(Call::lock, 3);
        story.unlock(true).result = "r3";
        break;
      case 1:
        story.say(story.chance(50) ? Call::lock : Call::status, 2);
        break;
      case 2:
        story.say(Call::subscribe, 2 + story.below(2));
        break;
      case 3:
      case 4: {
        RandomCommand& again = story.say(Call::reload);
        again.reload = ReloadChoice(story.below(3));
        again.amount = std::chrono::milliseconds(story.below(3));
        break;
      }
      case 5:
        story.say(Call::forget);
        if (story.chance(50)) story.say(Call::reload).reload = ReloadChoice(story.below(3));
        break;
      case 6:
        story.operation(all_operations()[story.below(5)]);
        story.say(Call::lock, 1).scope = Scope::operation;
        story.unlock(true);
        story.operation(own);
        break;
      default:
        story.deadline();
    }
  }
  story.say(Call::lock, 3);
}

}  // namespace

void tell_story(Random& random, std::vector<RandomCommand>& commands, const Names& names) {
  Story story(random, commands, names);
  switch (random.below(7)) {
    case 0:
      return grant_that_reaches_nobody(story);
    case 1:
      return queue_that_ends(story);
    case 2:
      return queues_that_end_one_after_the_other(story);
    case 3:
      return waiter_that_is_silent(story);
    case 4:
      return references_that_go(story);
    case 5:
      return success_that_is_kept(story);
    default:
      return waiter_behind_a_waiter(story);
  }
}

void gather_crowd(Random& random, std::vector<RandomCommand>& commands, Names& names) {
  names.resources = 1;
  names.operations = 1 + random.below(2);
  const uint32_t size = 30 + random.below(40);
  for (uint32_t i = 0; i < size; ++i) names.nodes.push_back("crowd" + std::to_string(i));
  const std::string operation = all_operations()[random.below(names.operations)];
  for (const std::string& node : names.nodes) {
    RandomCommand command{.call = Call::lock, .operation = operation, .resource = all_resources()[0]};
    command.node = node;
    command.bond = 1 + random.below(4);
    if (random.chance(40)) command.poll = commands.size() + 1;
    if (random.chance(10)) command.monitor = true;
    if (random.chance(5)) command.scope = Scope::resource;
    commands.push_back(command);
  }
}

}  // namespace turnstile::model
