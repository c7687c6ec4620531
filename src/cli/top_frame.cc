#include "cli/top_frame.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnstile::cli {
namespace {

std::string rate(const TopSight& sight, const TopSight* before, std::string_view name) {
  if (before == nullptr || sight.now <= before->now) return "-";
  // Below 0: the server was restarted and counts from 0 again.
  const double more = std::max(0.0, sight.server.metrics.sum(name) - before->server.metrics.sum(name));
  const double seconds = double((sight.now - before->now).count()) / 1'000;
  return fmt::format("{:.0f}/s", more / seconds);
}

std::string oldest_waiter(const TopSight& sight) {
  const WaiterStatus* oldest = nullptr;
  const LaneStatus* lane_of_it = nullptr;
  for (const LaneStatus& lane : sight.lanes) {
    // RFC 3339 in UTC sorts as text; the front of a queue is its oldest.
    if (lane.queue.empty() || (oldest != nullptr && oldest->since <= lane.queue.front().since)) continue;
    oldest = &lane.queue.front();
    lane_of_it = &lane;
  }
  if (oldest == nullptr) return "nobody waits";
  return fmt::format("oldest waiter: {} for {} in {} {}", one_line(oldest->node_id),
                     show_age(oldest->since, sight.now), one_line(lane_of_it->operation),
                     one_line(lane_of_it->resource));
}

std::vector<std::string> row_of(const LaneStatus& lane, WallTime now) {
  const bool held = lane.holder.has_value();
  return {fmt::to_string(lane.queue_length),
          one_line(lane.operation),
          shortened(one_line(lane.resource), 40),
          held ? shortened(one_line(lane.holder->node_id), 20) : "-",
          held ? show_age(lane.holder->since, now) : "-",
          held ? show_progress(lane.holder->done, lane.holder->total) : ""};
}

}  // namespace

std::string top_frame(const TopSight& sight, const TopSight* before, TopSize size) {
  const Metrics& metrics = sight.server.metrics;
  const auto number = [&](std::string_view name) { return uint64_t(metrics.sum(name)); };
  std::vector<std::string> lines = {
      fmt::format("{}  turnstiled {}", sight.server.server, sight.server.version),
      fmt::format("held {}  waiting {}  grants {}  hand-overs {}  skips {}  connections {}  streams {}",
                  number("turnstile_locks_held"), number("turnstile_waiters"),
                  rate(sight, before, "turnstile_grants_total"),
                  rate(sight, before, "turnstile_handover_seconds_count"),
                  rate(sight, before, "turnstile_skips_total"), number("turnstile_connections"),
                  number("turnstile_streams")),
      oldest_waiter(sight) + (sight.cut ? " (of the first lanes only: there are too many)" : ""), ""};
  std::vector<const LaneStatus*> hottest;
  for (const LaneStatus& lane : sight.lanes) hottest.push_back(&lane);
  std::ranges::stable_sort(hottest, std::ranges::greater(), &LaneStatus::queue_length);
  const size_t room = size.height > lines.size() + 1 ? size.height - lines.size() - 1 : 0;
  hottest.resize(std::min(hottest.size(), room));
  Table table({"WAITING", "TYPE", "RESOURCE", "HOLDER", "FOR", "PROGRESS"});
  for (const LaneStatus* lane : hottest) table.add(row_of(*lane, sight.now));
  const std::string all = fmt::format("{}\n{}", fmt::join(lines, "\n"), table.text());
  std::string out;
  for (size_t begin = 0, end; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1) {
    out.append(front_of(std::string_view(all).substr(begin, end - begin), size.width)).append("\n");
  }
  return out;
}

}  // namespace turnstile::cli
