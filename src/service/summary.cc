#include "service/summary.h"

#include "api/summary_json.h"

namespace turnstile {
namespace {

constexpr uint64_t kEventsLookedAt = 128;
constexpr size_t kMostEndings = 40;

HistoryView view_of(const History::Row& row) {
  HistoryView view;
  view.step = History::kStep;
  view.until = row.until;
  for (const HistoryPoint& point : row.points) {
    view.grants.push_back(point.grants);
    view.skips.push_back(point.skips);
    view.refusals.push_back(point.refusals);
    view.held.push_back(point.held);
    view.waiting.push_back(point.waiting);
    view.handover_ms.push_back(point.handover_ms);
    view.commit_ms.push_back(point.commit_ms);
  }
  return view;
}

}  // namespace

void append_summary(std::string& out, Service& service, Metrics& metrics, Prefixes within) {
  Engine& engine = service.engine();
  SummaryView view;
  view.now = service.now();
  view.life = service.life();
  view.uptime = view.now - service.began();
  view.resources = engine.resource_count();
  if (engine.settings().server_keeps_references) view.references = engine.reference_count();
  view.operations = metrics.sums();
  engine.for_each_kept([&](std::string_view operation, uint64_t kept) {
    for (OperationSums& each : view.operations)
      if (each.operation == operation || (operation.empty() && &each == &view.operations.back()))
        each.kept += kept;
  });
  view.history = view_of(metrics.history().read());

  const EventLog& log = service.events();
  EventBatch batch;  // the endings' texts
  view.last_event = log.position().published;
  const Filter seen = Filter::everything({}, {}, within);
  log.read(view.last_event - std::min(view.last_event, kEventsLookedAt), &seen, {}, batch);
  for (size_t i = batch.size(); i > 0 && view.endings.size() < kMostEndings; --i) {
    const Event event = batch.event(i - 1);
    if (event.kind != EventKind::granted) view.endings.push_back({batch.id(i - 1), event});
  }
  append_summary_json(out, view);
}

}  // namespace turnstile
