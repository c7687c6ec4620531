#include "events/router.h"

#include <algorithm>
#include <utility>

#include "base/plant.h"

namespace turnstile {
namespace {

// One turn of routing: bounds the memory of a batch, and how long a look-up keeps a new subscriber waiting.
constexpr ReadLimits kBatch{.events = 256, .bytes = 256 * 1024};
constexpr size_t kMostMatches = 4096;  // may be exceeded by the listeners of one event

}  // namespace

Router::Router(EventLog& log, EventFormatter format, DeliverToLoop deliver)
    : log_(log), format_(std::move(format)), deliver_(std::move(deliver)) {}

// What was published before the only listener's position concerns nobody, and need not be looked up again
// after a time without listeners.
void Router::add(Listener listener, const EventLog::Position& now) {
  if (subscriptions_.size() == 0) routed_ = std::max(routed_, std::min(listener.after, now.published));
  subscriptions_.add(std::move(listener));
}

void Router::stop_if_unheard() {
  if (subscriptions_.size() == 0) log_.stop_listening();
}

Subscribed Router::subscribe(unsigned loop, SubscriberId subscriber, Filter filter) {
  auto shared = std::make_shared<const Filter>(std::move(filter));
  const Locked lock(subscriptions_mutex_);
  const EventLog::Position now = log_.listen();
  add({subscriber, loop, now.last, std::move(shared)}, now);
  return {.live = true, .reset_at = 0, .position = now.last, .backlog = {}};
}

Subscribed Router::resume(unsigned loop, SubscriberId subscriber, Filter filter, uint64_t last_event_id,
                          const ReadLimits& limits) {
  auto shared = std::make_shared<const Filter>(std::move(filter));
  if (planted(Plant::resume_with_gap)) ++last_event_id;
  Subscribed result{.live = true, .reset_at = 0, .position = last_event_id, .backlog = {}};
  // Part by part, so that others get at the mutexes in between; only the last part must go with the adding:
  // what is published later is matched later, with this listener.
  for (;;) {
    const Locked lock(subscriptions_mutex_);
    const EventLog::Position now = log_.listen();         // before reading: what comes behind it is announced
    if (result.position > now.last) result.position = 0;  // an id of nobody's: everything may be missing
    const bool first_part = result.backlog.empty();
    const EventLog::Reading reading = log_.read(result.position, shared.get(), limits, result.backlog);
    if (reading.lost != 0) {
      result.reset_at = reading.lost - 1;
      if (!first_part) {  // what was read before the gap would stand behind the reset
        result.backlog.clear();
        result.position = reading.lost;
        stop_if_unheard();
        continue;
      }
    }
    result.position = reading.reached;
    if (reading.complete) {
      add({subscriber, loop, result.position, std::move(shared)}, now);
      return result;
    }
    stop_if_unheard();
    if (result.backlog.size() >= limits.events || result.backlog.bytes() >= limits.bytes) {
      result.live = false;
      return result;
    }
  }
}

void Router::unsubscribe(SubscriberId subscriber) {
  const Locked lock(subscriptions_mutex_);
  if (subscriptions_.remove(subscriber)) stop_if_unheard();
}

size_t Router::count() const {
  const Locked lock(subscriptions_mutex_);
  return subscriptions_.size();
}

void Router::answered(std::span<const StepId> steps) {
  if (log_.answered(steps)) route();
}

void Router::set_durable(uint64_t sequence) {
  if (log_.set_durable(sequence)) route();
}

// What is published while this runs is announced to another thread, which then waits for delivery_; so one
// pass up to the horizon is enough.
void Router::route() {
  const Locked delivery(delivery_);
  for (bool complete = false; !complete;) {
    complete = read_batch();
    size_t matched = 0;
    do {
      matched = match_some(matched);
      deliver_matches();
    } while (matched < batch_.size());
  }
}

// Returns whether the batch ends at the horizon.
bool Router::read_batch() {
  uint64_t after = 0;
  {
    const Locked lock(subscriptions_mutex_);
    after = routed_;
  }
  batch_.clear();
  const EventLog::Reading reading = log_.read(after, nullptr, kBatch, batch_);
  lost_ = reading.lost;
  return reading.complete;
}

// Looks up the listeners of the batch's events from this index on, and returns the index it got to. Events up
// to routed_ are skipped: add() may have moved it since the batch was read.
size_t Router::match_some(size_t from) {
  const Locked lock(subscriptions_mutex_);
  std::vector<Match>* const matches = &matches_;
  if (lost_ > routed_) {
    routed_ = lost_;
    subscriptions_.for_each_before(
        lost_, [&](const Listener& to) { matches->push_back({kReset, to.loop, to.subscriber}); });
  }
  size_t event = from;
  for (; event < batch_.size() && matches->size() < kMostMatches; ++event) {
    const uint64_t id = batch_.id(event);
    if (id <= routed_) continue;
    routed_ = id;
    subscriptions_.for_each_match(id, batch_.lane(event), [&](const Listener& to) {
      matches->push_back({event, to.loop, to.subscriber});
    });
  }
  return event;
}

void Router::deliver_matches() {
  size_t formatted = kReset;
  std::shared_ptr<const std::string> bytes;
  for (const Match& match : matches_) {
    if (match.event != formatted) {
      formatted = match.event;
      bytes = std::make_shared<const std::string>(format_(batch_.id(formatted), batch_.event(formatted)));
    }
    if (match.loop >= by_loop_.size()) by_loop_.resize(match.loop + 1);
    by_loop_[match.loop].push_back(
        {match.subscriber, match.event == kReset ? lost_ : batch_.id(formatted), bytes});
  }
  matches_.clear();
  for (unsigned loop = 0; loop < by_loop_.size(); ++loop) {
    if (!by_loop_[loop].empty()) deliver_(loop, std::exchange(by_loop_[loop], {}));
  }
}

std::string Router::format(const EventBatch& events) const {
  std::string out;
  for (size_t event = 0; event < events.size(); ++event)
    out += format_(events.id(event), events.event(event));
  return out;
}

}  // namespace turnstile
