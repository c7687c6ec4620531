#include "engine/resource.h"

namespace turnstile {

std::string Endings::to_key(const Requester& who) {
  std::string key(who.node.text);
  key += '\0';
  key += who.request.text;
  return key;
}

Requester Endings::from_key(std::string_view key) {
  const size_t split = key.find('\0');
  return {NodeId(key.substr(0, split)), RequestId(key.substr(split + 1))};
}

const Endings::Entry* Endings::find(const Requester& who) const {
  const auto found = by_requester_.find(to_key(who));
  return found == by_requester_.end() ? nullptr : &found->second;
}

void Endings::set(const Requester& who, Ending how, std::string_view error, Time until) {
  std::string key = to_key(who);
  order_.emplace_back(until, key);
  by_requester_[std::move(key)] = Entry{how, Text(error), until};
}

bool Endings::erase(const Requester& who) { return by_requester_.erase(to_key(who)) > 0; }

void Endings::drop_until(Time now) {
  while (!order_.empty() && order_.front().first <= now) {
    const auto found = by_requester_.find(order_.front().second);
    // It may have been erased, or set again with a later time, which has an entry of its own further back.
    if (found != by_requester_.end() && found->second.until <= now) by_requester_.erase(found);
    order_.pop_front();
  }
}

}  // namespace turnstile
