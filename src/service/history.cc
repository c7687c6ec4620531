#include "service/history.h"

#include <algorithm>

namespace turnstile {
namespace {

std::optional<double> average_ms(uint64_t count, double seconds) {
  if (count == 0) return std::nullopt;
  return 1000 * std::max(seconds, 0.0) / double(count);
}

// 0 for a total that has begun anew.
uint64_t since(uint64_t now, uint64_t before) { return now >= before ? now - before : 0; }

}  // namespace

void History::sample(const Totals& totals, Time now) {
  const Locked lock(mutex_);
  if (!begun_ || now < until_ - kStep) {  // a new life may have another clock
    begun_ = true;
    count_ = 0;
    until_ = now;
    last_ = totals;
    return;
  }
  const int64_t steps = (now - until_) / kStep;
  if (steps == 0) return;
  HistoryPoint nothing;
  nothing.held = last_.held;
  nothing.waiting = last_.waiting;
  for (int64_t i = 1; i < std::min<int64_t>(steps, kPoints + 1); ++i) add(nothing);
  HistoryPoint point;
  point.grants = since(totals.grants, last_.grants);
  point.skips = since(totals.skips, last_.skips);
  point.refusals = since(totals.refusals, last_.refusals);
  point.held = totals.held;
  point.waiting = totals.waiting;
  point.handover_ms =
      average_ms(since(totals.handovers, last_.handovers), totals.handover_seconds - last_.handover_seconds);
  point.commit_ms =
      average_ms(since(totals.commits, last_.commits), totals.commit_seconds - last_.commit_seconds);
  add(point);
  until_ += steps * kStep;
  last_ = totals;
}

void History::add(const HistoryPoint& point) { ring_[count_++ % kPoints] = point; }

History::Row History::read() const {
  const Locked lock(mutex_);
  Row row;
  row.until = until_;
  for (size_t i = count_ - std::min(count_, kPoints); i < count_; ++i)
    row.points.push_back(ring_[i % kPoints]);
  return row;
}

}  // namespace turnstile
