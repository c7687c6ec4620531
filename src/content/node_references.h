// This node's references, where the nodes count them themselves and not the lock server.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "content/digest.h"
#include "turnstile/ref_count.h"

namespace turnstile::content {

// One node's view of a RefCountManager whose storage all nodes share.
//
// What keeps a removal from meeting a new use is one rule (P7, as in run_once()): **the set of a blob's nodes
// grows only under a hold that excludes deletes**. So add() is called with such a hold, and a delete that has
// found the set empty under its own hold finds it empty until it ends. drop() needs none.
// Threads: any.
class NodeReferences {
 public:
  NodeReferences(std::shared_ptr<RefCountStorage> storage, std::string node)
      : storage_(std::move(storage)), manager_(storage_), node_(std::move(node)) {}

  Expected<void> add(const Digest& digest) { return manager_.add_ref(digest.text(), node_); }
  Expected<void> drop(const Digest& digest) { return manager_.release_ref(digest.text(), node_); }
  Expected<bool> has(const Digest& digest) const;      // this node
  Expected<bool> is_used(const Digest& digest) const;  // any node
  // All of this node's, in order.
  Expected<std::vector<Digest>> own() const;

 private:
  const std::shared_ptr<RefCountStorage> storage_;
  RefCountManager manager_;
  const std::string node_;
};

}  // namespace turnstile::content
