// The queue of waiting updates, and the applying of a batch of them.
#include "refcount/grouped_storage.h"

#include <utility>

#include "refcount/errors.h"

namespace turnstile::refcount {
namespace {

Expected<void> check_nodes(const ReferenceCount& count) {
  for (const std::string& node : count.nodes)
    if (auto valid = check_node(node); !valid) return valid;
  return {};
}

// Leaves `count` as it was unless the update is to be written.
void apply(PendingUpdate& update, ReferenceCount& count) {
  ReferenceCount changed = count;
  try {
    if (!update.change(update.resource, changed)) return;
  } catch (...) {
    update.thrown = std::current_exception();
    return;
  }
  update.result = check_nodes(changed);
  if (update.result) count = std::move(changed);
}

}  // namespace

Expected<void> check_resource(const std::string& resource) {
  if (resource.empty()) return invalid_error("a resource id must not be empty");
  return {};
}

Expected<void> check_node(const std::string& node_id) {
  if (node_id.empty()) return invalid_error("a node id must not be empty");
  return {};
}

Expected<BatchChanges> BatchChanges::make(std::span<PendingUpdate* const> batch, const Read& read) {
  BatchChanges made;
  for (PendingUpdate* update : batch) {
    auto [at, is_new] = made.changes_.try_emplace(update->resource);
    if (is_new) {
      auto count = read(update->resource);
      if (!count) return std::unexpected(count.error());
      at->second = {*count, *count};
    }
    apply(*update, at->second.after);
  }
  std::erase_if(made.changes_,
                [](const auto& entry) { return entry.second.before.nodes == entry.second.after.nodes; });
  return made;
}

Expected<void> GroupedStorage::set(const std::string& resource, const ReferenceCount& count) {
  return update(resource, [&](ReferenceCount& stored) {
    stored = count;
    return true;
  });
}

Expected<void> GroupedStorage::erase(const std::string& resource) { return set(resource, {}); }

Expected<void> GroupedStorage::update(const std::string& resource,
                                      const std::function<bool(ReferenceCount&)>& change) {
  return update_all({resource}, [&](const std::string&, ReferenceCount& count) { return change(count); });
}

Expected<void> GroupedStorage::update_all(
    const std::vector<std::string>& resources,
    const std::function<bool(const std::string&, ReferenceCount&)>& change) {
  std::vector<PendingUpdate> updates;
  updates.reserve(resources.size());
  for (const std::string& resource : resources) {
    if (auto valid = check_resource(resource); !valid) return valid;
    updates.push_back({.resource = resource, .change = change});
  }
  if (updates.empty()) return {};
  run(updates);
  for (PendingUpdate& update : updates) {
    if (update.thrown) std::rethrow_exception(update.thrown);
    if (!update.result) return update.result;
  }
  return {};
}

void GroupedStorage::run(std::span<PendingUpdate> updates) {
  std::vector<PendingUpdate*> batch;
  {
    Locked lock(mutex_);
    for (PendingUpdate& update : updates) queue_.push_back(&update);
    // They are queued together, so they are taken together: the last one stands for all.
    while (!updates.back().done && committing_) wait();
    if (updates.back().done) return;
    committing_ = true;
    batch.swap(queue_);
  }
  commit_batch(batch);
  Locked lock(mutex_);
  committing_ = false;
  // Not after the lock is free: a waiter that sees `done` may return and take its PendingUpdate with it.
  for (PendingUpdate* update : batch) update->done = true;
  committed_.notify_all();
}

void GroupedStorage::wait() {
  std::unique_lock<std::mutex> lock(mutex_.native(), std::adopt_lock);
  committed_.wait(lock);
  lock.release();
}

void GroupedStorage::commit_batch(std::span<PendingUpdate* const> batch) {
  Expected<void> committed;
  try {
    committed = commit(batch);
  } catch (const std::exception& error) {  // no memory: nobody must be left waiting for ever
    committed = storage_error(fmt::format("cannot update the references: {}", error.what()));
  }
  if (committed) return;
  for (PendingUpdate* update : batch)
    if (update->result) update->result = committed;
}

}  // namespace turnstile::refcount
