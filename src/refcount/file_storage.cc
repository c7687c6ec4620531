// Reference counts in one file that is replaced as a whole.
//
// For one process and some thousands of resources: every commit writes all of them. In return there is
// nothing to compact and nothing to repair; either content of the file is a whole one.
#include <utility>

#include "refcount/errors.h"
#include "refcount/file_format.h"
#include "refcount/grouped_storage.h"
#include "refcount/replaced_file.h"

namespace turnstile {

using namespace refcount;

namespace {

// Readers see what is durable, as it was at one moment, and wait for no disk.
//
// Threads: any; file_ belongs to the one commit() under way (GroupedStorage). Invariant: counts_ is what the
// file holds; after a failed sync of the directory the file may hold the next, which nobody has been told of.
class FileStorage final : public GroupedStorage {
 public:
  FileStorage(ReplacedFile file, Counts counts)
      : file_(std::move(file)), counts_(std::make_shared<const Counts>(std::move(counts))) {}

  Expected<ReferenceCount> get(const std::string& resource) const override {
    if (auto valid = check_resource(resource); !valid) return std::unexpected(valid.error());
    return find(*current(), resource);
  }

  Expected<void> for_each(
      const std::function<bool(const std::string&, const ReferenceCount&)>& visit) const override {
    const auto counts = current();
    for (const auto& [resource, count] : *counts)
      if (!visit(resource, *count)) break;
    return {};
  }

 private:
  static ReferenceCount find(const Counts& counts, const std::string& resource) {
    const auto at = counts.find(resource);
    return at == counts.end() ? ReferenceCount{} : *at->second;
  }

  Expected<void> commit(std::span<PendingUpdate* const> batch) override {
    const auto before = current();
    const auto made = BatchChanges::make(batch, [&](const std::string& resource) -> Expected<ReferenceCount> {
      return find(*before, resource);
    });
    if (!made) return std::unexpected(made.error());
    if (made->changes().empty()) return {};
    auto after = std::make_shared<Counts>(*before);
    for (const auto& [resource, change] : made->changes()) {
      if (change.after.nodes.empty())
        after->erase(resource);
      else
        (*after)[resource] = std::make_shared<const ReferenceCount>(change.after);
    }
    if (auto replaced = file_.replace(encode_counts(*after)); !replaced) return replaced;
    Locked lock(mutex_);
    counts_ = std::move(after);
    return {};
  }

  std::shared_ptr<const Counts> current() const TS_EXCLUDES(mutex_) {
    Locked lock(mutex_);
    return counts_;
  }

  ReplacedFile file_;
  mutable Mutex mutex_;
  std::shared_ptr<const Counts> counts_ TS_GUARDED_BY(mutex_);
};

}  // namespace

inline namespace v1 {

Expected<std::unique_ptr<RefCountStorage>> open_file_storage(const std::string& path) {
  auto file = ReplacedFile::open(path);
  if (!file) return std::unexpected(file.error());
  const auto bytes = file->read();
  if (!bytes) return std::unexpected(bytes.error());
  if (!*bytes) return std::make_unique<FileStorage>(std::move(*file), Counts{});
  auto counts = decode_counts(**bytes);
  if (!counts)
    return storage_error(
        fmt::format("the reference counts in {} cannot be used, at byte {}: {}. Nothing was "
                    "changed; restore the file from a backup, or move it away to begin with "
                    "no references",
                    file->path(), counts.error().at, counts.error().what));
  return std::make_unique<FileStorage>(std::move(*file), std::move(*counts));
}

}  // namespace v1
}  // namespace turnstile
