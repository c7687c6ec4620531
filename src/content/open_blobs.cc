// See open_blobs.h.
#include "content/open_blobs.h"

namespace turnstile::content {

std::shared_ptr<const OpenBlob> OpenBlobs::find_open(const Digest& digest) {
  const Locked lock(mutex_);
  const auto found = places_.find(digest.text());
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().blob;
}

Outcome<std::shared_ptr<const OpenBlob>> OpenBlobs::open(const Digest& digest) {
  if (std::shared_ptr<const OpenBlob> there = find_open(digest)) return there;
  Outcome<OpenBlob> opened = store_.find(digest);
  if (!opened) return std::unexpected(opened.error());
  std::shared_ptr<const OpenBlob> blob = std::make_shared<OpenBlob>(std::move(*opened));
  const Locked lock(mutex_);
  if (places_.contains(digest.text())) return blob;  // two at once: the other one's stays
  entries_.push_front({digest.text(), blob});
  places_.emplace(entries_.front().digest, entries_.begin());
  if (entries_.size() > limit_) {
    places_.erase(entries_.back().digest);
    entries_.pop_back();
  }
  return blob;
}

void OpenBlobs::forget(const Digest& digest) {
  const Locked lock(mutex_);
  const auto found = places_.find(digest.text());
  if (found == places_.end()) return;
  const auto entry = found->second;
  places_.erase(found);
  entries_.erase(entry);
}

}  // namespace turnstile::content
