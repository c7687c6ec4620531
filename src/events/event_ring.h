// The storage behind the event log: the latest events, bounded by number and by bytes. Apart from the log
// because wrapping around in a block of bytes is worth testing without horizons and threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/effects.h"

namespace turnstile {

// Keeps events in one block of `max_bytes`, written round and round; a new event overwrites the oldest ones.
// The block is taken once and touched only as far as it is used, so that push() never allocates.
//
// Not its job: who may see an event. Threads: none of its own; guarded by the log that owns it.
// Invariant: the events kept are those with ids first_id() ... last_id(), without a gap; within each lap of
// the block their places grow with their ids.
class EventRing {
 public:
  EventRing(uint64_t first_id, size_t max_events, size_t max_bytes);

  // Gives the event the next id. One that is larger than the whole block is not kept, nor is anything before
  // it.
  void push(const Event& event);

  uint64_t first_id() const { return first_; }  // of the oldest event kept; last_id() + 1 when there is none
  uint64_t last_id() const { return next_ - 1; }  // of the latest event, kept or not
  size_t size() const { return size_t(next_ - first_); }

  // The stored form (stored_event.h) of an event that is kept; valid until the next push().
  std::string_view at(uint64_t id) const;

 private:
  struct Place {
    uint32_t offset = 0;
    uint32_t size = 0;
  };

  bool empty() const { return first_ == next_; }
  Place& place(uint64_t id) { return places_[id % places_.size()]; }
  // Makes `size` bytes free at write_, which may move to the block's beginning for that.
  void make_room(size_t size);

  const size_t max_bytes_;
  std::unique_ptr<char[]> block_;
  std::vector<Place> places_;  // by id modulo its size, which is the largest number of events
  uint64_t first_;
  uint64_t next_;
  size_t write_ = 0;  // where in the block the next event goes
};

}  // namespace turnstile
