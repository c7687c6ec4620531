// See node_references.h.
#include "content/node_references.h"

#include <algorithm>

namespace turnstile::content {

Expected<bool> NodeReferences::has(const Digest& digest) const {
  const Expected<ReferenceCount> count = manager_.get_ref_count(digest.text());
  if (!count) return std::unexpected(count.error());
  return count->nodes.contains(node_);
}

Expected<bool> NodeReferences::is_used(const Digest& digest) const {
  const Expected<RefCountDecision> may = manager_.can_perform_operation(operations::kDelete, digest.text());
  if (!may) return std::unexpected(may.error());
  return !may->yes;
}

Expected<std::vector<Digest>> NodeReferences::own() const {
  std::vector<Digest> own;
  const Expected<void> walked =
      storage_->for_each([&](const std::string& resource, const ReferenceCount& count) {
        if (const Outcome<Digest> digest = Digest::parse(resource); digest && count.nodes.contains(node_))
          own.push_back(*digest);
        return true;
      });
  if (!walked) return std::unexpected(walked.error());
  std::sort(own.begin(), own.end());
  return own;
}

}  // namespace turnstile::content
