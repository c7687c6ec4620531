#include "service/metrics.h"

#include <prometheus/text_serializer.h>

namespace turnstile {
namespace {

using prometheus::Histogram;

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

const Histogram::BucketBoundaries kShort{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                         0.01,   0.025,   0.1,    0.5,   2.5};
const Histogram::BucketBoundaries kLong{0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600};

constexpr std::string_view kOther = "other";

// A gauge that two threads change may be seen between the two.
uint64_t count_of(double value) { return value > 0 ? uint64_t(value) : 0; }

}  // namespace

Metrics::Metrics(const std::vector<OperationRules>& operations)
    : registry_(std::make_shared<prometheus::Registry>()) {
  auto gauge = [&](const char* name, const char* help) -> auto& {
    return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_);
  };
  auto counter = [&](const char* name, const char* help) -> auto& {
    return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_);
  };
  auto histogram = [&](const char* name, const char* help) -> auto& {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry_);
  };
  auto& held = gauge("turnstile_locks_held", "Lanes that are held now");
  auto& waiters = gauge("turnstile_waiters", "Requesters that wait in a queue now");
  auto& grants = counter("turnstile_grants_total", "Holds granted");
  auto& skips = counter("turnstile_skips_total", "Requests told to skip, because the work is done");
  auto& refusals =
      counter("turnstile_refusals_total", "Requests and waits refused, or ended by a permanent failure");
  auto& wait_seconds = histogram("turnstile_wait_seconds", "From asking to the grant");
  auto& hold_seconds = histogram("turnstile_hold_seconds", "From the grant to the end of the hold");
  std::vector<std::string> names;
  for (const OperationRules& rules : operations)
    if (rules.name != kOther) names.push_back(rules.name);  // else it would be there, and be summed, twice
  names.emplace_back(kOther);
  for (const std::string& name : names) {
    const prometheus::Labels labels{{"operation", name}};
    operations_.push_back({name, &held.Add(labels), &waiters.Add(labels), &grants.Add(labels),
                           &skips.Add(labels), &refusals.Add(labels), &wait_seconds.Add(labels, kLong),
                           &hold_seconds.Add(labels, kLong)});
  }
  handover_seconds_ =
      &histogram("turnstile_handover_seconds",
                 "From the end of a hold to the answer that gives the lane to the next waiter")
           .Add({}, kShort);
  commit_seconds_ =
      &histogram("turnstile_journal_commit_seconds", "From a step to its being durable (sampled)")
           .Add({}, kShort);
  auto& requests = counter("turnstile_http_requests_total", "HTTP requests answered, by class of status");
  for (unsigned status : {2u, 3u, 4u, 5u})
    requests_.emplace_back(status, &requests.Add({{"status", std::to_string(status) + "xx"}}));
}

Metrics::PerOperation& Metrics::of(std::string_view operation) {
  for (PerOperation& each : operations_)
    if (each.name == operation) return each;
  return operations_.back();
}

void Metrics::observe(std::span<const Measure> measures) {
  for (const Measure& measure : measures) {
    PerOperation& operation = of(measure.operation);
    switch (measure.kind) {
      case MeasureKind::granted:
        operation.held->Increment();
        operation.grants->Increment();
        operation.wait_seconds->Observe(seconds_of(measure.time));
        break;
      case MeasureKind::ended:
        operation.held->Decrement();
        operation.hold_seconds->Observe(seconds_of(measure.time));
        break;
      case MeasureKind::queued:
        operation.waiters->Increment();
        break;
      case MeasureKind::left_queue:
        operation.waiters->Decrement(double(measure.count));
        break;
      case MeasureKind::skipped:
        operation.skips->Increment(double(measure.count));
        break;
      case MeasureKind::refused:
        operation.refusals->Increment(double(measure.count));
        break;
    }
  }
}

void Metrics::count_request(unsigned status) {
  for (auto& [type, counter] : requests_)
    if (type == status / 100) return counter->Increment();
}

void Metrics::forget_lanes() {
  for (PerOperation& each : operations_) {
    each.held->Set(0);
    each.waiters->Set(0);
  }
}

void Metrics::add_loaded(std::string_view operation, bool held, size_t waiters) {
  if (held) of(operation).held->Increment();
  of(operation).waiters->Increment(double(waiters));
}

std::vector<OperationSums> Metrics::sums() const {
  std::vector<OperationSums> all;
  for (const PerOperation& each : operations_) {
    OperationSums sums;
    sums.operation = each.name;
    sums.held = count_of(each.held->Value());
    sums.waiting = count_of(each.waiters->Value());
    sums.grants = count_of(each.grants->Value());
    sums.skips = count_of(each.skips->Value());
    sums.refusals = count_of(each.refusals->Value());
    all.push_back(sums);
  }
  return all;
}

Totals Metrics::totals() const {
  Totals totals;
  for (const OperationSums& each : sums()) {
    totals.held += each.held;
    totals.waiting += each.waiting;
    totals.grants += each.grants;
    totals.skips += each.skips;
    totals.refusals += each.refusals;
  }
  const auto handovers = handover_seconds_->Collect().histogram;
  totals.handovers = handovers.sample_count;
  totals.handover_seconds = handovers.sample_sum;
  const auto commits = commit_seconds_->Collect().histogram;
  totals.commits = commits.sample_count;
  totals.commit_seconds = commits.sample_sum;
  return totals;
}

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(registry_->Collect()); }

}  // namespace turnstile
