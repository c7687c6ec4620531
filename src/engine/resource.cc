#include "engine/resource.h"

#include <algorithm>
#include <iterator>

namespace turnstile {

std::string to_key(const Requester& who) {
  std::string key(who.node.text);
  key += '\0';
  key += who.request.text;
  return key;
}

Requester from_key(std::string_view key) {
  const size_t split = key.find('\0');
  return {NodeId(key.substr(0, split)), RequestId(key.substr(split + 1))};
}

const Endings::Entry* Endings::find(const Requester& who) const {
  const auto found = by_requester_.find(to_key(who));
  return found == by_requester_.end() ? nullptr : &found->second;
}

void Endings::set(const Requester& who, Entry entry) {
  std::string key = to_key(who);
  order_.emplace(entry.until, key);
  by_requester_[std::move(key)] = std::move(entry);
}

bool Endings::erase(const Requester& who) { return by_requester_.erase(to_key(who)) > 0; }

bool Endings::erase_skips(Time until, Token before) {
  const auto skipped = [&](const auto& each) {
    const Entry& entry = each.second;
    return entry.how == Ending::skipped && entry.until <= until && entry.hold.token < before;
  };
  return std::erase_if(by_requester_, skipped) > 0;
}

void Endings::drop_until(Time now) {
  while (!order_.empty() && order_.begin()->first <= now) {
    const auto found = by_requester_.find(order_.begin()->second);
    // It may have been erased, or set again with a later time, which has an entry of its own further back.
    if (found != by_requester_.end() && found->second.until <= now) by_requester_.erase(found);
    order_.erase(order_.begin());
  }
}

bool Bonds::has(const Requester& who, BondId id, bool subscriptions_only) const {
  const auto [from, to] = by_requester_.equal_range(to_key(who));
  return std::any_of(from, to, [&](const auto& entry) {
    return entry.second.id == id && (entry.second.subscription || !subscriptions_only);
  });
}

bool Bonds::add(const Requester& who, BondId id, bool subscription) {
  if (has(who, id)) return false;
  by_requester_.emplace(to_key(who), Bond{id, subscription});
  return true;
}

bool Bonds::erase(const Requester& who, BondId id) {
  const auto [from, to] = by_requester_.equal_range(to_key(who));
  const auto found = std::find_if(from, to, [&](const auto& entry) { return entry.second.id == id; });
  if (found == to) return false;
  by_requester_.erase(found);
  return true;
}

void Bonds::erase_connections(const Requester& who) {
  auto [at, end] = by_requester_.equal_range(to_key(who));
  while (at != end) at = at->second.subscription ? std::next(at) : by_requester_.erase(at);
}

}  // namespace turnstile
