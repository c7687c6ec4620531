#include "events/event_log.h"

#include <algorithm>

namespace turnstile {
namespace {

// How many events one reading looks at, matching or not: some 10 microseconds under the lock.
constexpr uint64_t kMostLookedAt = 1024;

}  // namespace

EventLog::EventLog(uint64_t first_id, EventLogSettings settings)
    : first_id_(first_id),
      last_of_earlier_life_(settings.last_of_earlier_life),
      beginning_of_earlier_life_(settings.beginning_of_earlier_life),
      ring_(first_id, settings.max_events, settings.max_bytes),
      durable_(settings.durable_store ? 0 : UINT64_MAX),
      published_(first_id - 1),
      announced_(first_id - 1) {}

StepId EventLog::append(std::span<const Event> events, uint64_t sequence) {
  if (events.empty()) return StepId::none;
  const Locked lock(mutex_);
  for (const Event& event : events) ring_.push(event);
  const StepId step = steps_.open(ring_.last_id(), sequence);
  // Nobody is told here, because the caller holds the commit's lock: the next answered() tells.
  published_ = std::max(published_, steps_.drop_before(ring_.first_id()));
  return step;
}

bool EventLog::answered(std::span<const StepId> steps) {
  const Locked lock(mutex_);
  for (const StepId step : steps) steps_.close(step);
  return advance();
}

bool EventLog::set_durable(uint64_t sequence) {
  const Locked lock(mutex_);
  durable_ = std::max(durable_, sequence);
  return advance();
}

bool EventLog::advance() {
  published_ = std::max(published_, steps_.advance(durable_));
  if (!listening_ || announced_ == published_) return false;
  announced_ = published_;
  return true;
}

EventLog::Position EventLog::position() const {
  const Locked lock(mutex_);
  return {ring_.last_id(), published_};
}

size_t EventLog::open_steps() const {
  const Locked lock(mutex_);
  return steps_.size();
}

EventLog::Position EventLog::listen() {
  const Locked lock(mutex_);
  if (!listening_) announced_ = published_;
  listening_ = true;
  return {ring_.last_id(), published_};
}

void EventLog::stop_listening() {
  const Locked lock(mutex_);
  listening_ = false;
}

// Whoever knows this id has missed nothing of this life, and nothing of an earlier one.
bool EventLog::is_beginning(uint64_t id) const {
  if (id == 0) return false;
  return id == first_id_ - 1 || id == first_id_ - 2 || id == last_of_earlier_life_ ||
         id == beginning_of_earlier_life_;
}

EventLog::Reading EventLog::read(uint64_t after, const Filter* filter, const ReadLimits& limits,
                                 EventBatch& out) const {
  const Locked lock(mutex_);
  if (is_beginning(after)) after = first_id_ - 1;
  Reading reading{.reached = after, .lost = 0, .complete = true};
  if (after >= published_ && after >= first_id_ - 1) return reading;
  if (ring_.first_id() > after + 1) {
    reading.lost = reading.reached = std::min(ring_.first_id() - 1, published_);
  }
  const uint64_t stop = std::min(published_, reading.reached + kMostLookedAt);
  while (reading.reached < stop && out.size() < limits.events && out.bytes() < limits.bytes) {
    const std::string_view stored = ring_.at(++reading.reached);
    if (filter == nullptr || filter->matches(load_lane(stored))) out.add(reading.reached, stored);
  }
  reading.complete = reading.reached == published_;
  return reading;
}

}  // namespace turnstile
