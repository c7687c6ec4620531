// What the three storages have in common: updates that wait share one commit.
//
// A file is replaced, and a database synced, once for everything that has been asked for meanwhile. Without
// this a thousand parallel updates would be a thousand syncs, one behind the other.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sync.h"
#include "turnstile/ref_count.h"

namespace turnstile::refcount {

// One update that waits for its commit. Lives on the stack of the thread that waits.
struct PendingUpdate {
  const std::string& resource;
  const std::function<bool(const std::string& resource, ReferenceCount& count)>& change;
  bool done = false;
  Expected<void> result{};         // of this update; an error of the commit's counts for all
  std::exception_ptr thrown = {};  // by `change`; goes on in the thread that asked
};

// Reads the counts that a batch asks for, each once, and collects what its updates make of them.
//
// Threads: none; it lives while one batch is committed. Invariant: holds only valid counts, so that an update
// that leaves an invalid one, or throws, has done nothing.
class BatchChanges {
 public:
  using Read = std::function<Expected<ReferenceCount>(const std::string& resource)>;
  struct Change {
    ReferenceCount before, after;
  };

  // The error is one of reading, and concerns the whole batch.
  static Expected<BatchChanges> make(std::span<PendingUpdate* const> batch, const Read& read);

  // Only resources whose count is really another one than before.
  const std::map<std::string, Change>& changes() const { return changes_; }

 private:
  std::map<std::string, Change> changes_;
};

// Takes updates from any thread and has them committed in batches, in the order in which they came.
//
// The first thread that finds nobody committing commits for all that wait, itself included, so there is no
// thread to start or to stop. Nothing returns before its commit has. Threads: any. Invariant: at most one
// commit() is under way, and no lock of this class is held meanwhile.
class GroupedStorage : public RefCountStorage {
 public:
  Expected<void> set(const std::string& resource, const ReferenceCount& count) final;
  Expected<void> erase(const std::string& resource) final;
  Expected<void> update(const std::string& resource,
                        const std::function<bool(ReferenceCount& count)>& change) final;
  Expected<void> update_all(
      const std::vector<std::string>& resources,
      const std::function<bool(const std::string& resource, ReferenceCount& count)>& change) final;

 protected:
  // Returns when the whole batch is durable, or with an error when none of it is known to be.
  virtual Expected<void> commit(std::span<PendingUpdate* const> batch) = 0;

 private:
  void run(std::span<PendingUpdate> updates) TS_EXCLUDES(mutex_);
  void wait() TS_REQUIRES(mutex_);
  void commit_batch(std::span<PendingUpdate* const> batch);

  Mutex mutex_;
  std::condition_variable committed_;
  std::vector<PendingUpdate*> queue_ TS_GUARDED_BY(mutex_);
  bool committing_ TS_GUARDED_BY(mutex_) = false;
};

// Error `invalid` for ids that no storage takes.
Expected<void> check_resource(const std::string& resource);
Expected<void> check_node(const std::string& node_id);

}  // namespace turnstile::refcount
