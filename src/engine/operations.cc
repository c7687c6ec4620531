#include "engine/operations.h"

namespace turnstile {
namespace {

std::unique_ptr<Operation> make(OperationRules rules, bool configured) {
  auto made = std::make_unique<Operation>();
  made->rules = std::move(rules);
  made->configured = configured;
  return made;
}

}  // namespace

Operations::Operations(const std::vector<OperationRules>& configured) {
  const Locked lock(mutex_);
  for (const OperationRules& rules : configured) {
    std::unique_ptr<const Operation> added = make(rules, true);
    const std::string_view name = added->rules.name;
    by_name_[name] = std::move(added);
  }
}

OperationUse Operations::use(std::string_view name, size_t most) {
  {
    // A use begins while the table cannot change, so that nobody forgets the name in between.
    const SharedLocked lock(mutex_);
    if (const auto found = by_name_.find(name); found != by_name_.end()) {
      found->second->begin_use();
      return OperationUse(found->second.get());
    }
  }
  const Locked lock(mutex_);
  auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    if (by_name_.size() >= most) forget_unused_locked();
    if (by_name_.size() >= most) return {};
    OperationRules plain_mutex;
    plain_mutex.name = std::string(name);
    std::unique_ptr<const Operation> added = make(std::move(plain_mutex), false);
    const std::string_view own_name = added->rules.name;
    found = by_name_.emplace(own_name, std::move(added)).first;
  }
  found->second->begin_use();
  return OperationUse(found->second.get());
}

void Operations::forget_unused() {
  const Locked lock(mutex_);
  forget_unused_locked();
}

void Operations::forget_unused_locked() {
  std::erase_if(by_name_, [](const auto& each) {
    return !each.second->configured && each.second->uses.load(std::memory_order_acquire) == 0;
  });
}

size_t Operations::size() const {
  const SharedLocked lock(mutex_);
  return by_name_.size();
}

}  // namespace turnstile
