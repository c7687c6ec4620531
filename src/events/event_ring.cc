#include "events/event_ring.h"

#include "base/check.h"
#include "events/stored_event.h"

namespace turnstile {

EventRing::EventRing(uint64_t first_id, size_t max_events, size_t max_bytes)
    : max_bytes_(max_bytes),
      block_(std::make_unique_for_overwrite<char[]>(max_bytes)),
      places_(max_events),
      first_(first_id),
      next_(first_id) {
  TS_CHECK(first_id > 0, "event ids start above 0, so that 0 can mean none");
  TS_CHECK(max_events > 0 && max_bytes <= UINT32_MAX, "the event ring's limits are in range");
}

void EventRing::push(const Event& event) {
  const size_t size = stored_size(event);
  if (size > max_bytes_) {
    first_ = ++next_;
    write_ = 0;
    return;
  }
  make_room(size);
  store_event(event, &block_[write_]);
  place(next_++) = {uint32_t(write_), uint32_t(size)};
  write_ += size;
}

void EventRing::make_room(size_t size) {
  if (this->size() == places_.size()) ++first_;
  if (write_ + size > max_bytes_) {
    // The rest of the block is too short. What lies there is from the lap before, older than all else.
    while (!empty() && place(first_).offset >= write_) ++first_;
    write_ = 0;
  }
  while (!empty() && place(first_).offset >= write_ && place(first_).offset < write_ + size) ++first_;
}

std::string_view EventRing::at(uint64_t id) const {
  TS_CHECK(id >= first_ && id < next_, "only events that are kept are read");
  const Place& place = places_[id % places_.size()];
  return {&block_[place.offset], place.size};
}

}  // namespace turnstile
