// Which rules an operation has. The configured ones are fixed; other names are remembered while they are
// used, because a million lanes of the same name must not store it a million times.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "engine/settings.h"

namespace turnstile {

struct Operation {
  OperationRules rules;
  bool configured = false;
  // Lanes, and calls under way. Not counted for the configured ones, which are never forgotten: a counter
  // that every request of every thread changes would cost more than all the rest.
  mutable std::atomic<uint32_t> uses{0};
  mutable std::atomic<uint64_t> kept{0};  // lanes with a completion

  std::string_view metric_name() const {
    return configured ? std::string_view(rules.name) : std::string_view();
  }
  void begin_use() const {
    if (!configured) uses.fetch_add(1, std::memory_order_relaxed);
  }
  void end_use() const {
    if (!configured) uses.fetch_sub(1, std::memory_order_release);
  }
};

// Keeps an operation from being forgotten. Empty: there is none.
class OperationUse {
 public:
  OperationUse() = default;
  // Takes over a use that has begun.
  explicit OperationUse(const Operation* begun) : operation_(begun) {}
  OperationUse(OperationUse&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
  OperationUse& operator=(OperationUse&&) = delete;
  ~OperationUse() {
    if (operation_ != nullptr) operation_->end_use();
  }
  const Operation* get() const { return operation_; }

 private:
  const Operation* operation_ = nullptr;
};

// Threads: any. A name that is neither configured nor used may be forgotten, and is when the table is full:
// there are at most kMostNames, beyond which a name is refused by the api (429 too_many_requests).
class Operations {
 public:
  static constexpr size_t kMostNames = 10'000;

  explicit Operations(const std::vector<OperationRules>& configured);

  // Empty when the table is full of names in use and this one is new.
  OperationUse use(std::string_view name) { return use(name, kMostNames); }
  // However many there are: what a journal holds is loaded first, and counted when all of it is known.
  OperationUse use_while_loading(std::string_view name) { return use(name, SIZE_MAX); }
  void forget_unused();
  size_t size() const;
  // Calls visit(metric name, lanes with a completion) for each; a name of the users' own is empty.
  template <class Visit>
  void for_each_kept(Visit visit) const {
    const SharedLocked lock(mutex_);
    for (const auto& [name, operation] : by_name_)
      visit(operation->metric_name(), operation->kept.load(std::memory_order_relaxed));
  }

 private:
  OperationUse use(std::string_view name, size_t most);
  void forget_unused_locked() TS_REQUIRES(mutex_);

  mutable SharedMutex mutex_;
  std::unordered_map<std::string_view, std::unique_ptr<const Operation>> by_name_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile
