// The way from the event log to the streams: who subscribed gets each of its events once, in order, on its
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sync.h"
#include "events/event_log.h"
#include "events/subscriptions.h"

namespace turnstile {

// One event for one stream. The bytes are shared by all streams that get the event.
struct Delivery {
  SubscriberId subscriber{};
  uint64_t id = 0;
  // Null: a reset. Events up to `id`, perhaps some of this stream's, were overwritten before they could be
  // routed.
  std::shared_ptr<const std::string> bytes;
};

using EventFormatter = std::function<std::string(uint64_t id, const Event& event)>;
using DeliverToLoop = std::function<void(unsigned loop, std::vector<Delivery>&& deliveries)>;

struct Subscribed {
  bool live = true;  // false: not subscribed yet; send the backlog, then resume after `position`
  // The id of a reset, if there is one: events up to the next id may have been missed. What is known since is
  // the backlog, and the id in between is for the state that is told before it.
  uint64_t reset_at = 0;
  uint64_t position = 0;  // everything up to here is in the backlog, or was before it
  EventBatch backlog;
};

// Publishes the log's events to the streams.
//
// Order: three mutexes, always taken in this order. delivery_ is held by the one thread that routes, from
// reading the log to the calls of `deliver`, so batches never overtake one another; another thread that has
// something to route waits for it, which is what keeps those who make events from running away from those who
// deliver them. subscriptions_mutex_ is held while listeners are looked up, not while events are formatted or
// delivered, so that subscribing (under a resource's mutex) never waits for that. The log's own mutex comes
// last. `deliver` is called under delivery_ and must only post to the loop: no waiting, no call back into the
// Router. Not its job: how many may subscribe, slow streams, and the words of an event; the server knows
// those. Threads: any. A stream's subscribe and resume are called on its loop's thread, so that what they
// return is sent before any delivery, which is posted. Invariant: routed_ only grows; an event is matched
// once, when routed_ passes it.
class Router {
 public:
  Router(EventLog& log, EventFormatter format, DeliverToLoop deliver);

  // From now on: every matching event appended after this call, and none appended before it, even if it is
  // not yet published. Returns live, and the id of the latest event appended.
  Subscribed subscribe(unsigned loop, SubscriberId subscriber, Filter filter);

  // Every matching event after `last_event_id`, once and in order: those already published as the backlog, a
  // part at a time, the others (appended already or not) as deliveries. With a reset where that id is too
  // old, of an earlier life or of nobody's: then everything that is still known.
  Subscribed resume(unsigned loop, SubscriberId subscriber, Filter filter, uint64_t last_event_id,
                    const ReadLimits& limits = {});

  // Deliveries under way may still arrive. Unknown subscribers are ignored.
  void unsubscribe(SubscriberId subscriber);
  size_t count() const;

  // See EventLog. These also route what became visible.
  void answered(std::span<const StepId> steps);
  void answered(StepId step) {
    if (step != StepId::none) answered(std::span(&step, 1));
  }
  void set_durable(uint64_t sequence);

  // The backlog as bytes for the stream. Apart from resume(), which may be called under a resource's mutex.
  std::string format(const EventBatch& events) const;

 private:
  struct Match {
    size_t event;  // index in batch_; kReset: a reset up to lost_
    unsigned loop;
    SubscriberId subscriber;
  };
  static constexpr size_t kReset = SIZE_MAX;

  void add(Listener listener, const EventLog::Position& now) TS_REQUIRES(subscriptions_mutex_);
  void stop_if_unheard() TS_REQUIRES(subscriptions_mutex_);
  void route() TS_EXCLUDES(delivery_);
  bool read_batch() TS_REQUIRES(delivery_) TS_EXCLUDES(subscriptions_mutex_);
  size_t match_some(size_t from) TS_REQUIRES(delivery_) TS_EXCLUDES(subscriptions_mutex_);
  void deliver_matches() TS_REQUIRES(delivery_);

  EventLog& log_;
  const EventFormatter format_;
  const DeliverToLoop deliver_;

  Mutex delivery_;
  // Memory that is used again from batch to batch.
  EventBatch batch_ TS_GUARDED_BY(delivery_);
  uint64_t lost_ TS_GUARDED_BY(delivery_) = 0;  // events up to here were overwritten before batch_ was read
  std::vector<Match> matches_ TS_GUARDED_BY(delivery_);
  std::vector<std::vector<Delivery>> by_loop_ TS_GUARDED_BY(delivery_);

  mutable Mutex subscriptions_mutex_;
  Subscriptions subscriptions_ TS_GUARDED_BY(subscriptions_mutex_);
  uint64_t routed_ TS_GUARDED_BY(subscriptions_mutex_) =
      0;  // listeners of events up to here have been looked up
};

}  // namespace turnstile
