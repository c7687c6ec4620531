#include "api/summary_json.h"

#include <fmt/format.h>

#include <iterator>

#include "api/event_json.h"
#include "api/json_append.h"

namespace turnstile {
namespace {

uint64_t milliseconds_of(Duration duration) { return uint64_t(to_ms(duration)); }

// name[v,v,v]
template <class Values, class Append>
void append_array(std::string& out, std::string_view name, const Values& values, Append append) {
  out.append(name) += '[';
  bool first = true;
  for (const auto& value : values) {
    if (!first) out += ',';
    first = false;
    append(value);
  }
  out += ']';
}

void append_numbers(std::string& out, std::string_view name, const std::vector<uint64_t>& numbers) {
  append_array(out, name, numbers, [&](uint64_t number) { append_number(out, number); });
}

void append_averages(std::string& out, std::string_view name,
                     const std::vector<std::optional<double>>& averages) {
  append_array(out, name, averages, [&](const std::optional<double>& average) {
    if (average)
      fmt::format_to(std::back_inserter(out), "{:.3f}", *average);
    else
      out.append("null");
  });
}

void append_operation(std::string& out, const OperationSums& sums) {
  append_text_field(out, R"({"type":)", sums.operation);
  append_number_field(out, R"(,"held":)", sums.held);
  append_number_field(out, R"(,"waiting":)", sums.waiting);
  append_number_field(out, R"(,"kept":)", sums.kept);
  append_number_field(out, R"(,"grants":)", sums.grants);
  append_number_field(out, R"(,"skips":)", sums.skips);
  append_number_field(out, R"(,"refusals":)", sums.refusals);
  out += '}';
}

void append_sums(std::string& out, const SummaryView& summary) {
  OperationSums all;
  for (const OperationSums& each : summary.operations) {
    all.held += each.held;
    all.waiting += each.waiting;
    all.kept += each.kept;
  }
  append_number_field(out, R"(,"resources":)", summary.resources);
  append_number_field(out, R"(,"held":)", all.held);
  append_number_field(out, R"(,"waiting":)", all.waiting);
  append_number_field(out, R"(,"kept":)", all.kept);
  if (summary.references) append_number_field(out, R"(,"references":)", *summary.references);
  append_array(out, R"(,"operations":)", summary.operations,
               [&](const OperationSums& each) { append_operation(out, each); });
}

void append_history(std::string& out, const HistoryView& history) {
  append_number_field(out, R"(,"history":{"step_ms":)", milliseconds_of(history.step));
  append_time_field(out, R"(,"until":)", history.until);
  append_numbers(out, R"(,"grants":)", history.grants);
  append_numbers(out, R"(,"skips":)", history.skips);
  append_numbers(out, R"(,"refusals":)", history.refusals);
  append_numbers(out, R"(,"held":)", history.held);
  append_numbers(out, R"(,"waiting":)", history.waiting);
  append_averages(out, R"(,"handover_ms":)", history.handover_ms);
  append_averages(out, R"(,"commit_ms":)", history.commit_ms);
  out += '}';
}

}  // namespace

void append_summary_json(std::string& out, const SummaryView& summary) {
  append_time_field(out, R"({"now":)", summary.now);
  fmt::format_to(std::back_inserter(out), R"(,"life":"{:x}")", summary.life);
  append_number_field(out, R"(,"uptime_ms":)", milliseconds_of(summary.uptime));
  append_sums(out, summary);
  append_history(out, summary.history);
  append_array(out, R"(,"endings":)", summary.endings, [&](const SummaryView::Ending& ending) {
    append_number_field(out, R"({"id":)", ending.id);
    append_event_json(out.append(R"(,"event":)"), ending.event);
    out += '}';
  });
  append_number_field(out, R"(,"last_event_id":)", summary.last_event);
  out += '}';
}

}  // namespace turnstile
