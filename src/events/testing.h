// What the tests and benchmarks of this folder share: short ways to make an event and to see what was
// delivered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "events/router.h"

namespace turnstile::events_testing {

inline constexpr SubscriberId kAlice{1}, kBob{2}, kCarol{3};

inline LaneName lane(std::string_view operation, std::string_view resource) {
  return {OperationName(operation), ResourceId(resource)};
}

inline Event event_on(std::string_view resource, EventKind kind = EventKind::granted) {
  Event event;
  event.kind = kind;
  event.lane = lane("pull", resource);
  event.who = {NodeId("node-1"), RequestId("request-1")};
  event.at = Time(Duration(1'700'000'000'000'000));
  event.token = Token(7);
  return event;
}

inline std::string format_id(uint64_t id, const Event& event) {
  return std::to_string(id) + ":" + std::string(event.lane.resource.text) + "\n";
}

// The streams' side: remembers what each subscriber was delivered, by loop.
// Threads: any.
class Inbox {
 public:
  DeliverToLoop deliver() {
    return [this](unsigned loop, std::vector<Delivery>&& deliveries) {
      const Locked lock(mutex_);
      for (Delivery& each : deliveries) all_[{loop, uint64_t(each.subscriber)}].push_back(std::move(each));
    };
  }
  std::vector<Delivery> of(unsigned loop, SubscriberId subscriber) {
    const Locked lock(mutex_);
    return all_[{loop, uint64_t(subscriber)}];
  }
  std::vector<uint64_t> ids(unsigned loop, SubscriberId subscriber) {
    std::vector<uint64_t> ids;
    for (const Delivery& each : of(loop, subscriber)) ids.push_back(each.id);
    return ids;
  }

 private:
  Mutex mutex_;
  std::map<std::pair<unsigned, uint64_t>, std::vector<Delivery>> all_ TS_GUARDED_BY(mutex_);
};

inline std::vector<uint64_t> ids_of(const EventBatch& batch) {
  std::vector<uint64_t> ids;
  for (size_t event = 0; event < batch.size(); ++event) ids.push_back(batch.id(event));
  return ids;
}

}  // namespace turnstile::events_testing
