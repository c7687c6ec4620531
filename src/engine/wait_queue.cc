#include "engine/wait_queue.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"

namespace turnstile {

size_t WaitQueue::Hash::operator()(const Requester& who) const {
  return size_t(xxh3_64(who.node.text) * 31 + xxh3_64(who.request.text));
}

Waiter* WaitQueue::find(const Requester& who) const {
  if (!index_.empty()) {
    const auto found = index_.find(who);
    return found == index_.end() ? nullptr : *found;
  }
  for (size_t i = head_; i < waiters_.size(); ++i)
    if (waiters_[i]->who() == who) return waiters_[i].get();
  return nullptr;
}

size_t WaitQueue::index_of(uint64_t ticket) const {
  const auto found =
      std::lower_bound(waiters_.begin() + std::ptrdiff_t(head_), waiters_.end(), ticket,
                       [](const auto& waiter, uint64_t wanted) { return waiter->ticket < wanted; });
  return size_t(found - waiters_.begin());
}

Waiter* WaitQueue::find_ticket(uint64_t ticket) const {
  const size_t at = index_of(ticket);
  return at < waiters_.size() && waiters_[at]->ticket == ticket ? waiters_[at].get() : nullptr;
}

uint32_t WaitQueue::position(const Waiter& waiter) const {
  return uint32_t(index_of(waiter.ticket) - head_ + 1);
}

Waiter& WaitQueue::add(std::unique_ptr<Waiter> waiter) {
  TS_CHECK(find(waiter->who()) == nullptr, "a requester is at most once in a queue");
  Waiter& added = *waiter;
  waiters_.insert(waiters_.begin() + std::ptrdiff_t(index_of(added.ticket)), std::move(waiter));
  if (added.scope == Scope::resource) {
    ++resource_scoped_;
    resource_scoped_from_ = std::min(resource_scoped_from_, added.ticket);
  }
  note_leaving(added, true);
  if (!index_.empty()) {
    if (!planted(Plant::index_misses_newcomers)) index_.insert(&added);
  } else if (size() >= kIndexFrom) {
    for (size_t i = head_; i < waiters_.size(); ++i) index_.insert(waiters_[i].get());
  }
  return added;
}

std::unique_ptr<Waiter> WaitQueue::remove(const Waiter& waiter) {
  const size_t at = index_of(waiter.ticket);
  TS_CHECK(at < waiters_.size() && waiters_[at].get() == &waiter, "a waiter that leaves is in its queue");
  forget(*waiters_[at]);
  std::unique_ptr<Waiter> removed = std::move(waiters_[at]);
  if (at == head_) {
    ++head_;
    compact();
  } else {
    waiters_.erase(waiters_.begin() + std::ptrdiff_t(at));
  }
  return removed;
}

void WaitQueue::forget(Waiter& waiter) {
  if (!index_.empty()) index_.erase(&waiter);
  resource_scoped_ -= waiter.scope == Scope::resource;
  note_leaving(waiter, false);
}

// Taking from the front only moves head_; now and then the space before it is given back.
void WaitQueue::compact() {
  if (head_ < 16 || head_ * 2 < waiters_.size()) return;
  waiters_.erase(waiters_.begin(), waiters_.begin() + std::ptrdiff_t(head_));
  head_ = 0;
}

uint64_t WaitQueue::first_resource_scope() const {
  if (resource_scoped_ == 0) return UINT64_MAX;
  size_t at = index_of(resource_scoped_from_);
  while (waiters_[at]->scope != Scope::resource) ++at;
  resource_scoped_from_ = waiters_[at]->ticket;
  return resource_scoped_from_;
}

std::vector<std::unique_ptr<Waiter>> WaitQueue::take_due_to_leave(Time now) {
  std::vector<size_t> places;
  for (const auto& [when, ticket] : leaving_) {
    if (when > now) break;
    places.push_back(index_of(ticket));
  }
  std::sort(places.begin(), places.end());
  std::vector<std::unique_ptr<Waiter>> taken;
  for (const size_t at : places) {
    forget(*waiters_[at]);
    taken.push_back(std::move(waiters_[at]));
  }
  if (taken.empty()) return taken;
  std::erase(waiters_, nullptr);  // also those before head_
  head_ = 0;
  return taken;
}

void WaitQueue::note_leaving(const Waiter& waiter, bool in) {
  if (waiter.leaves_at == kNever) return;
  if (in)
    leaving_.emplace(waiter.leaves_at, waiter.ticket);
  else
    leaving_.erase({waiter.leaves_at, waiter.ticket});
}

void WaitQueue::set_leaves_at(Waiter& waiter, Time when) {
  note_leaving(waiter, false);
  waiter.leaves_at = when;
  note_leaving(waiter, true);
}

}  // namespace turnstile
