// Events copied out of the log, so that they can be formatted and delivered without its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "events/stored_event.h"

namespace turnstile {

// Owns the texts of its events. clear() keeps the memory for the next use.
// Threads: none of its own. Invariant: ids grow.
class EventBatch {
 public:
  void add(uint64_t id, std::string_view stored) {
    entries_.push_back({id, bytes_.size(), stored.size()});
    bytes_.append(stored);
  }
  void clear() {
    entries_.clear();
    bytes_.clear();
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  size_t bytes() const { return bytes_.size(); }

  uint64_t id(size_t index) const { return entries_[index].id; }
  LaneName lane(size_t index) const { return load_lane(stored(index)); }
  // Its texts are views into this batch.
  Event event(size_t index) const { return load_event(stored(index)); }

 private:
  struct Entry {
    uint64_t id;
    size_t offset, size;
  };

  std::string_view stored(size_t index) const {
    return std::string_view(bytes_).substr(entries_[index].offset, entries_[index].size);
  }

  std::vector<Entry> entries_;
  std::string bytes_;
};

}  // namespace turnstile
