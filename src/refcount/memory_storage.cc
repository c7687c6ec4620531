// Reference counts that are gone with the process: for tests, and for nodes whose content is as short-lived.
#include <utility>

#include "refcount/grouped_storage.h"

namespace turnstile {

using namespace refcount;

namespace {

// Threads: any. The lock is held only to look up and to store, never while a caller's function runs.
class MemoryStorage final : public GroupedStorage {
 public:
  Expected<ReferenceCount> get(const std::string& resource) const override {
    if (auto valid = check_resource(resource); !valid) return std::unexpected(valid.error());
    Locked lock(mutex_);
    const auto at = counts_.find(resource);
    return at == counts_.end() ? ReferenceCount{} : at->second;
  }

  Expected<void> for_each(
      const std::function<bool(const std::string&, const ReferenceCount&)>& visit) const override {
    for (const auto& [resource, count] : copy())
      if (!visit(resource, count)) break;
    return {};
  }

 private:
  Expected<void> commit(std::span<PendingUpdate* const> batch) override {
    const auto made =
        BatchChanges::make(batch, [this](const std::string& resource) { return get(resource); });
    if (!made) return std::unexpected(made.error());
    Locked lock(mutex_);
    for (const auto& [resource, change] : made->changes()) {
      if (change.after.nodes.empty())
        counts_.erase(resource);
      else
        counts_[resource] = change.after;
    }
    return {};
  }

  std::map<std::string, ReferenceCount> copy() const TS_EXCLUDES(mutex_) {
    Locked lock(mutex_);
    return counts_;
  }

  mutable Mutex mutex_;
  std::map<std::string, ReferenceCount> counts_ TS_GUARDED_BY(mutex_);
};

}  // namespace

inline namespace v1 {

std::unique_ptr<RefCountStorage> make_memory_storage() { return std::make_unique<MemoryStorage>(); }

}  // namespace v1
}  // namespace turnstile
