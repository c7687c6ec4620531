// See content_store.h.
#include "content/content_store.h"

#include <fmt/format.h>

#include "base/log.h"

namespace turnstile::content {
namespace {

constexpr size_t kMaxLabel = 4096;  // key and value together

Outcome<void> apply_mask(Labels& labels, const Labels& wanted, const std::vector<std::string>& mask) {
  if (mask.empty()) labels = wanted;
  for (const std::string& path : mask) {
    constexpr std::string_view kOne = "labels.";
    if (path == "labels") {
      labels = wanted;
    } else if (path.starts_with(kOne)) {
      const std::string key = path.substr(kOne.size());
      const auto value = wanted.find(key);
      labels[key] = value == wanted.end() ? "" : value->second;
    } else {
      return fail(ErrorClass::invalid_argument, fmt::format("'{}' cannot be updated, only labels can", path));
    }
  }
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  return check_labels(labels);
}

}  // namespace

Outcome<void> check_labels(const Labels& labels) {
  for (const auto& [key, value] : labels)
    if (key.size() + value.size() > kMaxLabel)
      return fail(ErrorClass::invalid_argument,
                  fmt::format("label '{}': key and value have {} bytes, {} are allowed", key.substr(0, 64),
                              key.size() + value.size(), kMaxLabel));
  return {};
}

ContentStore::ContentStore(BlobStore blobs, std::unique_ptr<NodeState> state,
                           std::unique_ptr<Arbiter> arbiter, std::shared_ptr<Metrics> metrics,
                           Lives::Options options)
    : blobs_(std::move(blobs)),
      state_(std::move(state)),
      arbiter_(std::move(arbiter)),
      metrics_(std::move(metrics)),
      open_blobs_(blobs_),
      lives_(blobs_, *state_, *arbiter_, *metrics_, std::move(options)) {}

Outcome<void> ContentStore::start() {
  const Outcome<size_t> cleaned = blobs_.clean_ingests();
  if (!cleaned) return std::unexpected(cleaned.error());
  if (*cleaned > 0) log_info("ingests that cannot be resumed were removed", {{"count", *cleaned}});
  return lives_.recover();
}

void ContentStore::start_thread() { lives_.start(); }

bool ContentStore::has(const Digest& digest) const { return state_->size_of(digest) && blobs_.find(digest); }

Outcome<BlobInfo> ContentStore::info(const Digest& digest) const {
  if (std::optional<BlobInfo> found = state_->find(digest)) return std::move(*found);
  return fail(ErrorClass::not_found, fmt::format("content {}: not found", digest.text()));
}

Outcome<BlobInfo> ContentStore::update(const Digest& digest, const Labels& labels,
                                       const std::vector<std::string>& mask) {
  return state_->update(digest, [&](Labels& there) { return apply_mask(there, labels, mask); });
}

std::vector<BlobInfo> ContentStore::list(const Filter& filter) const {
  std::vector<BlobInfo> all = state_->list();
  std::erase_if(all, [&](const BlobInfo& info) {
    const std::string size = fmt::to_string(info.size);
    return !filter.matches(
        [&](std::string_view field, std::string_view key) -> std::optional<std::string_view> {
          if (field == "digest") return info.digest.text();
          if (field == "size") return size;
          if (field != "labels") return std::nullopt;
          const auto label = info.labels.find(std::string(key));
          if (label == info.labels.end()) return std::nullopt;
          return label->second;
        });
  });
  return all;
}

Outcome<std::vector<IngestStatus>> ContentStore::statuses(const Filter& filter) const {
  Outcome<std::vector<IngestStatus>> all = blobs_.ingests();
  if (!all) return all;
  std::erase_if(*all, [&](const IngestStatus& status) {
    return !filter.matches([&](std::string_view field, std::string_view) -> std::optional<std::string_view> {
      if (field == "ref") return status.ref;
      return std::nullopt;
    });
  });
  return all;
}

Outcome<std::shared_ptr<const OpenBlob>> ContentStore::open(const Digest& digest) {
  if (!state_->size_of(digest))
    return fail(ErrorClass::not_found, fmt::format("content {}: not found", digest.text()));
  return open_blobs_.open(digest);
}

std::shared_ptr<const OpenBlob> ContentStore::find_open(const Digest& digest) {
  return state_->size_of(digest) ? open_blobs_.find_open(digest) : nullptr;
}

ContentStore::Mending ContentStore::mend(const Finding& finding) {
  const Digest& digest = finding.digest;
  const Outcome<KeyLocks::Held> held = digests_.take(digest.text());
  if (!held || !state_->has(digest)) return Mending::needless;
  open_blobs_.forget(digest);
  if (finding.kind == Finding::Kind::gone) return blobs_.find(digest) ? Mending::needless : Mending::done;
  Outcome<void> done;
  bool elsewhere = false;
  if (finding.kind == Finding::Kind::unpublished) done = blobs_.publish_again(digest);
  if (finding.kind == Finding::Kind::damaged) {
    const Outcome<bool> away = put_away(digest, finding.seen);
    elsewhere = away && !*away;
    done =
        away ? lives_.guard_again(digest) : std::unexpected(away.error());  // there may be a good one by now
  }
  if (!done) log_warning("a blob's file", {{"digest", digest.text()}, {"error", done.error().message}});
  return !done ? Mending::failed : elsewhere ? Mending::elsewhere : Mending::done;
}

Outcome<bool> ContentStore::put_away(const Digest& digest, const OpenBlob& seen) {
  Outcome<bool> away = blobs_.put_damaged_away(digest, seen);
  if (away && !*away) (void)damaged_elsewhere_.note(digest, seen);
  return away;
}

// What goes wrong with the file is logged, not answered: an error would stop containerd's garbage collection
// half way, and what it could do about it is nothing.
Outcome<void> ContentStore::remove(const Digest& digest) {
  const Outcome<KeyLocks::Held> held = digests_.take(digest.text());
  if (!held) return std::unexpected(held.error());
  // Closed before its names are removed: on NFS a file that is open keeps one (.nfs…).
  open_blobs_.forget(digest);
  const Outcome<bool> left = lives_.leave(digest);
  if (!left) return std::unexpected(left.error());
  if (*left) metrics_->add(Count::uses_ended);
  return {};
}

}  // namespace turnstile::content
