// Which of many things is due next: the engine's shards ask it about resources, the HTTP loops about
// connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/time.h"

namespace turnstile {

// Where an item stands in its heap; a member of the item, named by the heap's template argument.
using HeapPlace = uint32_t;
inline constexpr HeapPlace kNotInHeap = UINT32_MAX;

// A binary heap of deadlines in which each item appears at most once and can be moved or taken out at any
// time.
//
// Not its job: deciding what happens then; the owner asks take_due() and applies its own rules.
// Time: never reads a clock. Threads: none of its own; guarded by its owner.
// Invariant: items_[i].item->*Place == i; an item outside has kNotInHeap.
template <class Item, HeapPlace Item::* Place>
class DeadlineHeap {
 public:
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  Time next() const { return entries_.empty() ? kNever : entries_.front().deadline; }

  // Puts `item` in with this deadline, moves it, or (kNever) takes it out.
  void set(Item& item, Time deadline) {
    if (deadline == kNever) return erase(item);
    HeapPlace at = item.*Place;
    if (at == kNotInHeap) {
      at = HeapPlace(entries_.size());
      entries_.push_back({deadline, &item});
      item.*Place = at;
      up(at);
    } else {
      const Time before = entries_[at].deadline;
      entries_[at].deadline = deadline;
      deadline < before ? up(at) : down(at);
    }
  }

  void erase(Item& item) {
    const HeapPlace at = item.*Place;
    if (at == kNotInHeap) return;
    TS_CHECK(at < entries_.size() && entries_[at].item == &item, "an item knows its place in the heap");
    item.*Place = kNotInHeap;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.item == &item) return give_back();
    entries_[at] = last;
    last.item->*Place = at;
    up(at);
    down(last.item->*Place);
    give_back();
  }

  // The first item whose deadline is not after `now`, taken out; nullptr when none is due.
  Item* take_due(Time now) {
    if (next() > now || entries_.empty()) return nullptr;
    Item* item = entries_.front().item;
    erase(*item);
    return item;
  }

 private:
  struct Entry {
    Time deadline;
    Item* item;
  };

  void put(HeapPlace at, const Entry& entry) {
    entries_[at] = entry;
    entry.item->*Place = at;
  }
  void up(HeapPlace at) {
    const Entry entry = entries_[at];
    for (; at > 0; at = (at - 1) / 2) {
      const HeapPlace parent = (at - 1) / 2;
      if (entries_[parent].deadline <= entry.deadline) break;
      put(at, entries_[parent]);
    }
    put(at, entry);
  }
  void down(HeapPlace at) {
    const Entry entry = entries_[at];
    for (size_t child; (child = size_t(at) * 2 + 1) < entries_.size(); at = HeapPlace(child)) {
      if (child + 1 < entries_.size() && entries_[child + 1].deadline < entries_[child].deadline) ++child;
      if (entries_[child].deadline >= entry.deadline) break;
      put(at, entries_[child]);
    }
    put(at, entry);
  }
  // A heap that was once large must not stay large (memory is flat after a million keys have come and gone).
  void give_back() {
    if (entries_.capacity() > 1024 && entries_.size() < entries_.capacity() / 4) entries_.shrink_to_fit();
  }

  std::vector<Entry> entries_;
};

}  // namespace turnstile
