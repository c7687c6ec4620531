#include "world.h"

#include <fmt/format.h>

namespace turnstile::sim {
namespace {

bool fails(const Plan& plan) { return !play(plan).violations.empty(); }

}  // namespace

Outcome play(const Plan& plan, bool with_trace) {
  return plan.replica.servers > 0 ? play_replicated(plan, with_trace) : play_single(plan, with_trace);
}

Plan shrink(Plan plan) {
  for (size_t size = plan.moves.size() / 2; size > 0; size /= 2) {
    for (size_t at = 0; at + size <= plan.moves.size();) {
      Plan less = plan;
      less.moves.erase(less.moves.begin() + ptrdiff_t(at), less.moves.begin() + ptrdiff_t(at + size));
      if (fails(less))
        plan = std::move(less);
      else
        at += size;
    }
  }
  return plan;
}

std::string report(const Plan& plan) {
  const Plan least = shrink(plan);
  const Outcome outcome = play(least, true);
  std::string text = fmt::format("seed {0} (./dev sim{1} --seed {0} --histories 1)\nsettings: {2}\n",
                                 plan.seed, plan.replica.servers > 0 ? " replicated" : "", show(plan.server));
  text += fmt::format("{} of {} moves are needed:\n", least.moves.size(), plan.moves.size());
  for (const Move& move : least.moves) text += show(move) + "\n";
  text += "what was seen (microseconds):\n" + outcome.trace;
  for (const std::string& violation : outcome.violations) text += "VIOLATION: " + violation + "\n";
  return text;
}

}  // namespace turnstile::sim
