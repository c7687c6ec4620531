#include "cli/top_frame.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnstile::cli {
namespace {

std::string rate(const TopSight& sight, const TopSight* before, std::string_view name) {
  if (before == nullptr || sight.now <= before->now || sight.server.hidden) return "-";
  // Below 0: the server was restarted and counts from 0 again.
  const double more = std::max(0.0, sight.server.metrics.sum(name) - before->server.metrics.sum(name));
  const double seconds = std::chrono::duration<double>(sight.now - before->now).count();
  return fmt::format("{:.0f}/s", more / seconds);
}

std::string oldest_waiter(const TopSight& sight) {
  const WaiterStatus* oldest = nullptr;
  const LaneStatus* lane_of_it = nullptr;
  for (const LaneStatus& lane : sight.lanes) {
    // The front of a queue is its oldest.
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
          one_line(lane.resource),
          held ? one_line(lane.holder->node_id) : "-",
          held ? show_age(lane.holder->since, now) : "-",
          held ? show_progress(lane.holder->done, lane.holder->total) : ""};
}

using Rows = std::vector<std::vector<std::string>>;
constexpr size_t kType = 1, kResource = 2, kHolder = 3, kProgress = 5;

// Takes columns away from the texts that can spare them until a row has `width`: the resource first, for it
// is the longest, and at the end its progress. What is cut keeps its ends.
void fit(Rows& rows, size_t width) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  size_t sum = 2 * (widths.size() - 1);
  for (const size_t one : widths) sum += one;
  struct Share {
    size_t column, least;
  };
  for (const Share share :
       {Share{kResource, 16}, Share{kHolder, 8}, Share{kType, 6}, Share{kResource, 8}, Share{kProgress, 4}}) {
    if (sum <= width) break;
    const size_t least = std::max(share.least, display_width(rows.front()[share.column]));
    const size_t spare = widths[share.column] > least ? widths[share.column] - least : 0;
    const size_t taken = std::min(spare, sum - width);
    widths[share.column] -= taken;
    sum -= taken;
  }
  for (auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = shortened(row[i], widths[i]);
  }
}

WallTime since_of(const LaneStatus& lane) { return lane.holder ? lane.holder->since : WallTime::max(); }
std::string holder_of(const LaneStatus& lane) { return lane.holder ? lane.holder->node_id : "~"; }

void sort(std::vector<const LaneStatus*>& lanes, TopOrder order) {
  switch (order) {
    case TopOrder::waiting:
      std::ranges::stable_sort(lanes, std::ranges::greater(), &LaneStatus::queue_length);
      return;
    case TopOrder::age:
      std::ranges::stable_sort(lanes, {}, [](const LaneStatus* lane) { return since_of(*lane); });
      return;
    case TopOrder::resource:
      std::ranges::stable_sort(lanes, {}, &LaneStatus::resource);
      return;
    case TopOrder::holder:
      std::ranges::stable_sort(lanes, {}, [](const LaneStatus* lane) { return holder_of(*lane); });
  }
}

}  // namespace

std::optional<TopOrder> order_of(char key) {
  switch (key) {
    case 'w':
      return TopOrder::waiting;
    case 'a':
      return TopOrder::age;
    case 'r':
      return TopOrder::resource;
    case 'h':
      return TopOrder::holder;
    default:
      return std::nullopt;
  }
}

std::string top_frame(const TopSight& sight, const TopSight* before, TopSize size, TopOrder order) {
  const Metrics& metrics = sight.server.metrics;
  const bool hidden = sight.server.hidden;
  const auto number = [&](std::string_view name) {
    return hidden ? "-" : fmt::to_string(uint64_t(metrics.sum(name)));
  };
  std::vector<std::string> lines = {
      fmt::format("{}  turnstiled {}", sight.server.server, sight.server.version),
      fmt::format("held {}  waiting {}  grants {}  hand-overs {}  skips {}  connections {}  streams {}",
                  number("turnstile_locks_held"), number("turnstile_waiters"),
                  rate(sight, before, "turnstile_grants_total"),
                  rate(sight, before, "turnstile_handover_seconds_count"),
                  rate(sight, before, "turnstile_skips_total"), number("turnstile_connections"),
                  number("turnstile_streams")),
      oldest_waiter(sight) + (sight.cut ? " (of the first lanes only: there are too many)" : ""), ""};
  std::vector<const LaneStatus*> lanes;
  for (const LaneStatus& lane : sight.lanes) lanes.push_back(&lane);
  sort(lanes, order);
  // Without the heads of the columns; if not all have room, the last line says how many are left out.
  const size_t room = size.height > lines.size() + 1 ? size.height - lines.size() - 1 : 0;
  const size_t shown = lanes.size() <= room ? lanes.size() : room > 0 ? room - 1 : 0;
  Rows rows = {{"WAITING", "TYPE", "RESOURCE", "HOLDER", "FOR", "PROGRESS"}};
  for (size_t i = 0; i < shown; ++i) rows.push_back(row_of(*lanes[i], sight.now));
  fit(rows, size.width);
  Table table(rows.front());
  for (size_t i = 1; i < rows.size(); ++i) table.add(rows[i]);
  std::string all = fmt::format("{}\n{}", fmt::join(lines, "\n"), table.text());
  if (shown < lanes.size()) all += fmt::format("{} more\n", lanes.size() - shown);
  std::string out;
  size_t count = 0;
  for (size_t begin = 0, end; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (count++ == size.height) break;
    if (count > 1) out += '\n';
    out.append(front_of(std::string_view(all).substr(begin, end - begin), size.width));
  }
  return out;
}

}  // namespace turnstile::cli
