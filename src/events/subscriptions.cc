#include "events/subscriptions.h"

#include "base/check.h"

namespace turnstile {

void Subscriptions::add(Listener listener) {
  const Filter& filter = *listener.filter;
  List* list = &everything_;
  if (filter.kind == Filter::Kind::lane) list = &lanes_[OwnedLane{filter.operation, filter.resource}];
  const bool added = places_.emplace(uint64_t(listener.subscriber), Place{list, list->size()}).second;
  TS_CHECK(added, "a subscriber subscribes once");
  list->push_back(std::move(listener));
}

bool Subscriptions::remove(SubscriberId subscriber) {
  const auto found = places_.find(uint64_t(subscriber));
  if (found == places_.end()) return false;
  const auto [list, index] = found->second;
  places_.erase(found);
  const std::shared_ptr<const Filter> filter = std::move((*list)[index].filter);
  if (index + 1 < list->size()) {
    (*list)[index] = std::move(list->back());
    places_.at(uint64_t((*list)[index].subscriber)).index = index;
  }
  list->pop_back();
  if (list->empty() && filter->kind == Filter::Kind::lane)
    lanes_.erase({filter->operation, filter->resource});
  return true;
}

}  // namespace turnstile
