// References in a directory that all nodes share, for a lock server that keeps none (`--references client`).
//
//   <directory>/<algorithm>/<first two digits>/<hex>.<node>      this node uses this blob; an empty file
//
// The library's own storages are for one machine: SQLite and flock do not reach over a network file system or
// mergerfs. Making and removing a file does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "content/digest.h"
#include "content/directory.h"
#include "turnstile/ref_count.h"

namespace turnstile::content {

// Resources are digests; nodes have plain names.
//
// update() is weaker than RefCountStorage asks for: it is one step only for changes of the caller's own name
// (add_ref, release_ref), because no two nodes touch the same file. Whoever decides by the names of others
// (add_ref_if_used, a delete) must hold the resource at the lock server meanwhile.
// Threads: any; all state is on the disk, and is there when a call returns.
class SharedReferences final : public RefCountStorage {
 public:
  // `create`: made if missing.
  static Outcome<std::unique_ptr<SharedReferences>> open(const std::string& directory, bool create);

  Expected<ReferenceCount> get(const std::string& resource) const override;
  Expected<void> set(const std::string& resource, const ReferenceCount& count) override;
  Expected<void> erase(const std::string& resource) override;
  Expected<void> for_each(const std::function<bool(const std::string& resource, const ReferenceCount& count)>&
                              visit) const override;
  Expected<void> update(const std::string& resource,
                        const std::function<bool(ReferenceCount& count)>& change) override;

 private:
  explicit SharedReferences(Directory directory) : directory_(std::move(directory)) {}
  Outcome<ReferenceCount> read(const Digest& digest) const;
  Outcome<void> write(const Digest& digest, const ReferenceCount& before, const ReferenceCount& after) const;

  const Directory directory_;
};

}  // namespace turnstile::content
