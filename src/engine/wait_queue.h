// The waiters of one lane, first in, first out.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/plant.h"
#include "base/text.h"
#include "engine/types.h"

namespace turnstile {

struct Waiter {
  Text node, request, info;
  uint64_t ticket = 0;  // its place in the order of all waiters of the server
  Time since{};
  Time heard_at{};  // when it last asked, or a long poll or bond of its ended (S35)
  Duration lease{};
  Scope scope = Scope::operation;
  bool monitor = false;
  bool dereference = false;
  bool bonded = false;        // lives by its bonds: has one, or the grace of the last one runs
  Time leaves_at = kNever;    // when that grace is over (S21)
  std::vector<PollId> polls;  // open long polls; the answer goes to all of them

  Requester who() const { return {NodeId(node), RequestId(request)}; }
};

// Ten thousand nodes may wait for one layer, so that finding a requester, its position and the front must not
// depend on the length of the queue: tickets only grow along it, and a long queue gets an index by requester.
//
// Threads: guarded by the resource it belongs to.
// Invariant: a requester is in it at most once; tickets ascend.
class WaitQueue {
 public:
  bool empty() const { return head_ == waiters_.size(); }
  size_t size() const { return waiters_.size() - head_; }
  Waiter& front() const { return planted(Plant::queue_is_lifo) ? *waiters_.back() : *waiters_[head_]; }
  Waiter& at(size_t index) const { return *waiters_[head_ + index]; }

  Waiter* find(const Requester& who) const;
  Waiter* find_ticket(uint64_t ticket) const;
  uint32_t position(const Waiter& waiter) const;  // from 1

  // In the order of tickets; recovery may bring them in any order.
  Waiter& add(std::unique_ptr<Waiter> waiter);
  std::unique_ptr<Waiter> remove(const Waiter& waiter);

  // The ticket of the first waiter that excludes every other operation; UINT64_MAX when there is none.
  uint64_t first_resource_scope() const;
  // When the first of the running graces is over. Waiter::leaves_at is only to be changed through
  // set_leaves_at().
  Time next_leave() const { return leaving_.empty() ? kNever : leaving_.begin()->first; }
  // Those whose grace is over, in the order of their tickets: in one pass, because thousands may go at once.
  std::vector<std::unique_ptr<Waiter>> take_due_to_leave(Time now);
  void set_leaves_at(Waiter& waiter, Time when);

 private:
  // Below this a look along the queue is as fast as an index, and most queues are short.
  static constexpr size_t kIndexFrom = 32;

  struct Hash {
    using is_transparent = void;
    size_t operator()(const Requester& who) const;
    size_t operator()(const Waiter* waiter) const { return (*this)(waiter->who()); }
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const Waiter* a, const Waiter* b) const { return a == b; }
    bool operator()(const Requester& a, const Waiter* b) const { return a == b->who(); }
    bool operator()(const Waiter* a, const Requester& b) const { return a->who() == b; }
  };

  size_t index_of(uint64_t ticket) const;
  void forget(Waiter& waiter);  // all but its place
  void note_leaving(const Waiter& waiter, bool in);
  void compact();

  std::vector<std::unique_ptr<Waiter>> waiters_;
  size_t head_ = 0;  // before it: taken
  size_t resource_scoped_ = 0;
  mutable uint64_t resource_scoped_from_ = 0;  // no waiter with a lower ticket is one; a queue is walked once
  std::set<std::pair<Time, uint64_t>> leaving_;  // when, and the ticket
  std::unordered_set<Waiter*, Hash, Same> index_;
};

}  // namespace turnstile
