// What references allow and forbid, and how operations change them (semantics.md, sections 4 and 5).
#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "refcount/grouped_storage.h"

namespace turnstile {

using namespace refcount;

namespace {

constexpr size_t kMostNames = 5;

// "node-a, node-b and 3 more".
std::string names_of(const ReferenceCount& count) {
  std::string names;
  size_t named = 0;
  for (const std::string& node : count.nodes) {
    if (named == kMostNames) break;
    if (named++ > 0) names += ", ";
    names += node;
  }
  if (count.count() > kMostNames) names += fmt::format(" and {} more", count.count() - kMostNames);
  return names;
}

std::string used_by(const std::string& resource, const ReferenceCount& count) {
  return fmt::format("The resource {} is used by {} {}", resource, count.count() == 1 ? "node" : "nodes",
                     names_of(count));
}

std::string unused(const std::string& resource) {
  return fmt::format("No node uses the resource {}.", resource);
}

}  // namespace

// For storages of the user's own: correct, and as slow as so many updates.
Expected<void> RefCountStorage::update_all(
    const std::vector<std::string>& resources,
    const std::function<bool(const std::string&, ReferenceCount&)>& change) {
  for (const std::string& resource : resources) {
    auto updated = update(resource, [&](ReferenceCount& count) { return change(resource, count); });
    if (!updated) return updated;
  }
  return {};
}

RefCountManager::RefCountManager(std::shared_ptr<RefCountStorage> storage, RefCountSettings settings)
    : storage_(std::move(storage)), settings_(settings) {
  TS_CHECK(storage_ != nullptr, "a RefCountManager has a storage");
}

Expected<RefCountDecision> RefCountManager::should_skip_operation(const std::string& operation,
                                                                  const std::string& resource) const {
  const auto count = get_ref_count(resource);
  if (!count) return std::unexpected(count.error());
  if (operation != operations::kPull)
    return RefCountDecision{false, fmt::format("References never make the operation {} on the resource {} "
                                               "unnecessary.",
                                               operation, resource)};
  if (count->nodes.empty()) return RefCountDecision{false, unused(resource)};
  return RefCountDecision{true, used_by(resource, *count) + ", so it is there and need not be pulled."};
}

Expected<RefCountDecision> RefCountManager::can_perform_operation(const std::string& operation,
                                                                  const std::string& resource) const {
  const auto count = get_ref_count(resource);
  if (!count) return std::unexpected(count.error());
  const bool guarded = operation == operations::kDelete ||
                       (operation == operations::kUpdate && settings_.update_requires_no_ref);
  if (count->nodes.empty()) return RefCountDecision{true, unused(resource)};
  if (!guarded)
    return RefCountDecision{
        true, fmt::format("{}, which the operation {} allows.", used_by(resource, *count), operation)};
  return RefCountDecision{
      false, fmt::format("{}, so the operation {} is not allowed.", used_by(resource, *count), operation)};
}

Expected<void> RefCountManager::update_ref_count(const std::string& operation, const std::string& resource,
                                                 const std::string& node_id, const WorkResult& result) {
  if (auto valid = check_resource(resource); !valid) return valid;
  if (!result.success) return {};
  if (operation == operations::kPull) return add_ref(resource, node_id);
  if (operation == operations::kDelete) return storage_->erase(resource);
  return {};
}

Expected<ReferenceCount> RefCountManager::get_ref_count(const std::string& resource) const {
  return storage_->get(resource);
}

Expected<void> RefCountManager::add_ref(const std::string& resource, const std::string& node_id) {
  if (auto valid = check_node(node_id); !valid) return valid;
  return storage_->update(resource,
                          [&](ReferenceCount& count) { return count.nodes.insert(node_id).second; });
}

Expected<bool> RefCountManager::add_ref_if_used(const std::string& resource, const std::string& node_id) {
  if (auto valid = check_node(node_id); !valid) return std::unexpected(valid.error());
  bool used = false;
  auto updated = storage_->update(resource, [&](ReferenceCount& count) {
    used = !count.nodes.empty();
    return used && count.nodes.insert(node_id).second;
  });
  if (!updated) return std::unexpected(updated.error());
  return used;
}

Expected<void> RefCountManager::release_ref(const std::string& resource, const std::string& node_id) {
  if (auto valid = check_node(node_id); !valid) return valid;
  return storage_->update(resource, [&](ReferenceCount& count) { return count.nodes.erase(node_id) > 0; });
}

Expected<size_t> RefCountManager::release_node_refs(const std::string& node_id) {
  if (auto valid = check_node(node_id); !valid) return std::unexpected(valid.error());
  std::vector<std::string> resources;
  auto walked = storage_->for_each([&](const std::string& resource, const ReferenceCount& count) {
    if (count.nodes.contains(node_id)) resources.push_back(resource);
    return true;
  });
  if (!walked) return std::unexpected(walked.error());
  std::set<std::string> released;  // a set, because a change may be called more than once
  auto updated = storage_->update_all(resources, [&](const std::string& resource, ReferenceCount& count) {
    const bool was_there = count.nodes.erase(node_id) > 0;
    if (was_there) released.insert(resource);
    return was_there;
  });
  if (!updated) return std::unexpected(updated.error());
  return released.size();
}

}  // namespace turnstile
