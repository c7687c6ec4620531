// Reference counts kept by the caller, for servers that run with `references = client` (S18).
//
// A node that uses a resource is in its set of nodes, once. A pulled resource is not pulled again while the
// set is not empty; it is not deleted, and (if so configured) not updated either.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "turnstile/error.h"
#include "turnstile/export.h"
#include "turnstile/hold.h"
#include "turnstile/operations.h"

namespace turnstile {
inline namespace v1 {

struct ReferenceCount {
  std::set<std::string> nodes;
  size_t count() const { return nodes.size(); }
};

// Where reference counts are kept. Threads: every member may be called by any number of threads.
class TURNSTILE_API RefCountStorage {
 public:
  virtual ~RefCountStorage() = default;

  // A resource without references has an empty set, and takes no room.
  virtual Expected<ReferenceCount> get(const std::string& resource) const = 0;
  virtual Expected<void> set(const std::string& resource, const ReferenceCount& count) = 0;
  virtual Expected<void> erase(const std::string& resource) = 0;
  // In the order of the resource ids, as of one moment. `visit` must not call the storage; false ends the
  // walk.
  virtual Expected<void> for_each(
      const std::function<bool(const std::string& resource, const ReferenceCount& count)>& visit) const = 0;
  // Reads, changes and writes as one step that no other caller (or process, where several may use the
  // storage) comes between, and that a crash does whole or not at all. `change` returns false to leave things
  // as they are; it may be called more than once and by another thread while this one waits, and must not
  // call the storage.
  virtual Expected<void> update(const std::string& resource,
                                const std::function<bool(ReferenceCount& count)>& change) = 0;
  // update() of each of these resources. The storages below do it with one commit; without an
  // implementation of its own a storage does one after the other.
  virtual Expected<void> update_all(
      const std::vector<std::string>& resources,
      const std::function<bool(const std::string& resource, ReferenceCount& count)>& change);
};

// Gone with the process.
TURNSTILE_API std::unique_ptr<RefCountStorage> make_memory_storage();
// One file, replaced as a whole (write, fsync, rename): for one process and up to some thousands of
// resources.
TURNSTILE_API Expected<std::unique_ptr<RefCountStorage>> open_file_storage(const std::string& path);
// A SQLite database in WAL mode: several processes of one machine may share it.
TURNSTILE_API Expected<std::unique_ptr<RefCountStorage>> open_sqlite_storage(const std::string& path);

struct RefCountDecision {
  bool yes = false;
  std::string why;  // for people
};

struct RefCountSettings {
  bool update_requires_no_ref = false;
};

// The rules: pull adds the node once, update changes nothing, delete clears; what failed changes nothing.
//
// Threads: every member may be called by any number of threads.
class TURNSTILE_API RefCountManager {
 public:
  explicit RefCountManager(std::shared_ptr<RefCountStorage> storage, RefCountSettings settings = {});

  // A pull is skipped when the resource is referenced.
  Expected<RefCountDecision> should_skip_operation(const std::string& operation,
                                                   const std::string& resource) const;
  // A delete, and an update when so configured, is not allowed while the resource is referenced.
  Expected<RefCountDecision> can_perform_operation(const std::string& operation,
                                                   const std::string& resource) const;
  Expected<void> update_ref_count(const std::string& operation, const std::string& resource,
                                  const std::string& node_id, const WorkResult& result);
  Expected<ReferenceCount> get_ref_count(const std::string& resource) const;

  // One node's own reference, and all of a node's (how many they were). Repeating them is harmless.
  Expected<void> add_ref(const std::string& resource, const std::string& node_id);
  // Joins the nodes that use the resource, if there are any, in one step. False: nobody does, and so it may
  // be gone, or going; nothing has changed.
  Expected<bool> add_ref_if_used(const std::string& resource, const std::string& node_id);
  Expected<void> release_ref(const std::string& resource, const std::string& node_id);
  Expected<size_t> release_node_refs(const std::string& node_id);

 private:
  std::shared_ptr<RefCountStorage> storage_;
  RefCountSettings settings_;
};

}  // namespace v1
}  // namespace turnstile
