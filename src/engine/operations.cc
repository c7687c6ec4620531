#include "engine/operations.h"

namespace turnstile {

Operations::Operations(const std::vector<OperationRules>& configured) {
  const Locked lock(mutex_);
  for (const OperationRules& rules : configured) {
    const Operation& added = all_.emplace_back(Operation{rules, true});
    by_name_[added.rules.name] = &added;
  }
}

const Operation* Operations::find(std::string_view name) const {
  const SharedLocked lock(mutex_);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Operation* Operations::find_or_add(std::string_view name) {
  if (const Operation* found = find(name)) return found;
  const Locked lock(mutex_);
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  if (all_.size() >= kMostNames) return nullptr;
  OperationRules plain_mutex;
  plain_mutex.name = std::string(name);
  const Operation& added = all_.emplace_back(Operation{std::move(plain_mutex), false});
  by_name_[added.rules.name] = &added;
  return &added;
}

}  // namespace turnstile
