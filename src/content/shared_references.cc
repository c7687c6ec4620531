// See shared_references.h.
#include "content/shared_references.h"

#include <algorithm>
#include <map>

#include "content/blob_store.h"

namespace turnstile::content {
namespace {

std::unexpected<ClientError> storage_error(const ContentError& error) {
  return std::unexpected(ClientError{ErrorCode::storage, error.message, {}, {}});
}

// Where the files of a blob, and of some others, lie.
std::string shard_of(const Digest& digest) {
  return std::string(name_of(digest.algorithm())) + "/" + std::string(digest.hex().substr(0, 2));
}

std::string file_of(const Digest& digest, const std::string& node) {
  return std::string(digest.hex()) + "." + node;
}

// Each file of a shard that is a reference; others (a file system's own, an editor's) are passed over.
Outcome<void> visit_shard(const Directory& shard,
                          const std::function<void(std::string_view hex, const std::string& node)>& visit) {
  return shard.for_each([&](const std::string& name) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos || !is_plain_name(name.substr(dot + 1))) return;
    visit(std::string_view(name).substr(0, dot), name.substr(dot + 1));
  });
}

Outcome<std::vector<std::string>> names_in(const Directory& directory) {
  std::vector<std::string> names;
  const Outcome<void> walked = directory.for_each([&](const std::string& name) { names.push_back(name); });
  if (!walked) return std::unexpected(walked.error());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Outcome<std::unique_ptr<SharedReferences>> SharedReferences::open(const std::string& directory, bool create) {
  Outcome<Directory> root = Directory::open_root(directory, create);
  if (!root) return std::unexpected(root.error());
  for (const Algorithm algorithm : {Algorithm::sha256, Algorithm::sha512})
    if (const Outcome<Directory> made = root->open_or_make(std::string(name_of(algorithm))); !made)
      return std::unexpected(made.error());
  if (const Outcome<void> synced = root->sync(); !synced) return std::unexpected(synced.error());
  return std::unique_ptr<SharedReferences>(new SharedReferences(std::move(*root)));
}

Outcome<ReferenceCount> SharedReferences::read(const Digest& digest) const {
  ReferenceCount count;
  const Outcome<Directory> shard = directory_.open(shard_of(digest));
  if (!shard && shard.error().code == ErrorClass::not_found) {
    // No shard is no reference, but only while the directory itself is there: a mount may have gone.
    const Outcome<Directory> above = directory_.open(std::string(name_of(digest.algorithm())));
    if (!above) return fail(ErrorClass::internal, above.error().message);
    return count;
  }
  if (!shard) return std::unexpected(shard.error());
  const Outcome<void> walked = visit_shard(*shard, [&](std::string_view hex, const std::string& node) {
    if (hex == digest.hex()) count.nodes.insert(node);
  });
  if (!walked) return std::unexpected(walked.error());
  return count;
}

Outcome<void> SharedReferences::write(const Digest& digest, const ReferenceCount& before,
                                      const ReferenceCount& after) const {
  const Outcome<Directory> shard = directory_.open_or_make(shard_of(digest));
  if (!shard) return std::unexpected(shard.error());
  std::vector<std::string> added;
  for (const std::string& node : after.nodes) {
    if (before.nodes.contains(node)) continue;
    if (!is_plain_name(node)) return fail(ErrorClass::invalid_argument, node + " is no name of a node");
    if (const Outcome<UniqueFd> made = shard->open_file(file_of(digest, node), O_WRONLY | O_CREAT, 0644);
        !made)
      return std::unexpected(made.error());
    added.push_back(file_of(digest, node));
  }
  for (const std::string& node : before.nodes)
    if (!after.nodes.contains(node))
      if (const Outcome<void> removed = shard->remove_file(file_of(digest, node)); !removed) return removed;
  const auto sync = [&]() -> Outcome<void> {
    if (const Outcome<void> synced = shard->sync(); !synced) return synced;
    const Outcome<Directory> above = directory_.open(std::string(name_of(digest.algorithm())));
    if (!above) return std::unexpected(above.error());
    return above->sync();  // the shard may be new
  };
  const Outcome<void> synced = sync();
  // Else it would count the next time, when nobody asks whether it is on the disk.
  if (!synced)
    for (const std::string& file : added) (void)shard->remove_file(file);
  return synced;
}

Expected<ReferenceCount> SharedReferences::get(const std::string& resource) const {
  const Outcome<Digest> digest = Digest::parse(resource);
  if (!digest) return storage_error(digest.error());
  Outcome<ReferenceCount> count = read(*digest);
  if (!count) return storage_error(count.error());
  return std::move(*count);
}

Expected<void> SharedReferences::update(const std::string& resource,
                                        const std::function<bool(ReferenceCount& count)>& change) {
  const Outcome<Digest> digest = Digest::parse(resource);
  if (!digest) return storage_error(digest.error());
  const Outcome<ReferenceCount> before = read(*digest);
  if (!before) return storage_error(before.error());
  ReferenceCount after = *before;
  if (!change(after) || after.nodes == before->nodes) return {};
  if (const Outcome<void> written = write(*digest, *before, after); !written)
    return storage_error(written.error());
  return {};
}

Expected<void> SharedReferences::set(const std::string& resource, const ReferenceCount& count) {
  return update(resource, [&](ReferenceCount& there) {
    there = count;
    return true;
  });
}

Expected<void> SharedReferences::erase(const std::string& resource) { return set(resource, {}); }

Expected<void> SharedReferences::for_each(
    const std::function<bool(const std::string& resource, const ReferenceCount& count)>& visit) const {
  for (const Algorithm algorithm : {Algorithm::sha256, Algorithm::sha512}) {
    const std::string name(name_of(algorithm));
    const Outcome<Directory> all = directory_.open(name);
    if (!all) return storage_error(all.error());
    const Outcome<std::vector<std::string>> shards = names_in(*all);
    if (!shards) return storage_error(shards.error());
    for (const std::string& each : *shards) {
      const Outcome<Directory> shard = all->open(each);
      if (!shard) return storage_error(shard.error());
      std::map<std::string, ReferenceCount> counts;
      const Outcome<void> walked = visit_shard(*shard, [&](std::string_view hex, const std::string& node) {
        counts[name + ":" + std::string(hex)].nodes.insert(node);
      });
      if (!walked) return storage_error(walked.error());
      for (const auto& [resource, count] : counts)
        if (Digest::parse(resource) && !visit(resource, count)) return {};
    }
  }
  return {};
}

}  // namespace turnstile::content
