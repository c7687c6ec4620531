// The parts of the checker: what is known of each grant, and one member for each promise that is looked at.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checker.h"

namespace turnstile::sim {

using Calls = std::vector<const Call*>;

// A hold that a client was told of.
struct Grant {
  uint64_t token = 0;
  std::string type, resource, node, request;
  bool resource_scope = false;
  Time invoked{};            // not granted before,
  Time learned = kNever;     // and not after
  Time ends = kNever;        // not ended before, by anything;
  Time ends_alone = kNever;  // ... or by anything but an unlock
  bool claimed = false;      // an answer told of it, not an event alone

  std::string lane() const { return type + " " + resource; }
  std::string who() const { return node + "/" + request; }
};

inline bool conflict(const Grant& a, const Grant& b) {  // S7
  return a.type == b.type || a.resource_scope || b.resource_scope;
}

inline bool may_have_worked(const Call& call) { return !call.has_returned() || call.done; }
// By whoever knows: not "another server leads".
inline bool was_answered(const Call& call) {
  return call.has_returned() && call.status < 429 && call.status != 307;
}

// Threads: one. Looks at the history once, when it is made.
class Checker {
 public:
  explicit Checker(const Judged& what);

  std::vector<std::string> run();
  // The tokens of grants that were told by then and cannot have ended.
  std::set<uint64_t> held_at(Time now) const;

 private:
  template <class... Arguments>
  void violation(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    violations_.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  std::string show(const Call& call) const { return sim::show(call, what_.start); }
  std::string show(const Grant& grant) const {
    return fmt::format("token {} of {} [{}], told at {}, cannot have ended before {}", grant.token,
                       grant.lane(), grant.who(), at(grant.learned), at(grant.ends));
  }
  std::string at(Time time) const {
    return time == kNever ? "ever" : std::to_string((time - what_.start).count());
  }
  const Calls& calls_of(const std::string& resource) const {
    static const Calls none;
    const auto found = by_resource_.find(resource);
    return found == by_resource_.end() ? none : found->second;
  }

  // grants.cc
  void find_grants();
  Grant& note(uint64_t token, const std::string& type, const std::string& resource, const std::string& node,
              const std::string& request, Time learned);
  void find_end(Grant& grant);

  // check_holds.cc
  void late_answers();
  void exclusion();
  void tokens();
  void kept(const Grant& grant);
  bool may_be_unlocked_before(const Grant& grant, const Call& than) const;
  void released();
  void unknown_grants();
  bool was_woken(const Grant& grant) const;
  bool is_heard_of(const Grant& grant, Time latest) const;
  void first_in_first_out();
  Time waits_since(const Grant& grant) const;

  // check_work.cc
  static bool may_be_between(const Call& call, Time from, Time to);
  bool is_success(const Call& call, std::string_view type) const;
  void done_once();
  Time first_ask(const Call& call) const;
  void skipped(const Call& call, const Calls& calls, const Call* deleted);
  void done_again(const Call& call, const Calls& calls);
  void references();
  std::set<std::string> nodes_of(const Calls& calls) const;
  static bool adds(const Call& call, const std::string& node);
  static bool drops(const Call& call, const std::string& node);
  static bool surely_adds(const Call& call);
  static bool surely_drops(const Call& call);
  void reference(const Call& look, const std::string& node, const Calls& of_resource);
  static bool deletes_node(const Call& call, const std::string& node);

  // check_kept.cc
  Duration keep_of(const Call& done) const;
  bool may_be_told(const Call& told, const Call& done) const;
  void results();
  void result_of(const Call& told, const Calls& calls);
  void ran_out(const Call& call, const Calls& calls);
  void results_of_events();

  // check_events.cc
  void answers_before_events();
  bool has_waited(const Call& call) const;
  static bool is_state(const SeenStream& stream, const SeenEvent& event);
  void streams();
  void owed(const SeenStream& stream, const std::map<uint64_t, const SeenEvent*>& all, uint64_t after,
            uint64_t before);

  const Judged& what_;
  std::map<std::string, Calls> by_resource_;
  std::map<uint64_t, Grant> grants_;  // by token
  std::vector<std::string> violations_;
};

}  // namespace turnstile::sim
