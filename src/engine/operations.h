// Which rules an operation has. The configured ones are fixed; other names are remembered as they come,
// because a million lanes of the same name must not store it a million times.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/sync.h"
#include "engine/settings.h"

namespace turnstile {

struct Operation {
  OperationRules rules;
  bool configured = false;
  std::string_view metric_name() const {
    return configured ? std::string_view(rules.name) : std::string_view();
  }
};

// Threads: any. Never forgets a name, so a pointer stays valid; hence kMostNames, beyond which a name is
// refused by the api (429 too_many_requests) instead of growing the table for ever.
class Operations {
 public:
  static constexpr size_t kMostNames = 10'000;

  explicit Operations(const std::vector<OperationRules>& configured);

  const Operation* find(std::string_view name) const;
  // nullptr when the table is full and the name is new.
  const Operation* find_or_add(std::string_view name);

 private:
  mutable SharedMutex mutex_;
  std::unordered_map<std::string_view, const Operation*> by_name_ TS_GUARDED_BY(mutex_);
  std::deque<Operation> all_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
