#include "checker.h"

#include "checks.h"

namespace turnstile::sim {

Checker::Checker(const Judged& what) : what_(what) {
  for (const Call& call : what.history.calls) by_resource_[call.resource].push_back(&call);
  find_grants();
  for (auto& [token, grant] : grants_) find_end(grant);
}

std::vector<std::string> Checker::run() {
  tokens();
  if (what_.restored) return std::move(violations_);  // all that a backup leaves of the promises
  late_answers();
  exclusion();
  for (const auto& [token, grant] : grants_)
    if (grant.claimed) kept(grant);
  released();
  unknown_grants();
  first_in_first_out();
  done_once();
  results();
  results_of_events();
  references();
  answers_before_events();
  streams();
  return std::move(violations_);
}

std::set<uint64_t> Checker::held_at(Time now) const {
  std::set<uint64_t> tokens;
  for (const auto& [token, grant] : grants_)
    if (grant.learned <= now && grant.ends > now) tokens.insert(token);
  return tokens;
}

std::vector<std::string> judge(const Judged& what) { return Checker(what).run(); }

std::set<uint64_t> must_be_held(const Judged& what, Time now) { return Checker(what).held_at(now); }

}  // namespace turnstile::sim
