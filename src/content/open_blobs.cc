// See open_blobs.h.
#include "content/open_blobs.h"

namespace turnstile::content {

std::shared_ptr<const OpenBlob> OpenBlobs::find_open(const Digest& digest) {
  const Clock::time_point now = now_();
  const Locked lock(mutex_);
  const auto found = places_.find(digest.text());
  if (found == places_.end() || now - found->second->looked >= kLookAgain) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().blob;
}

Outcome<std::shared_ptr<const OpenBlob>> OpenBlobs::open(const Digest& digest) {
  if (std::shared_ptr<const OpenBlob> there = find_open(digest)) return there;
  const Clock::time_point now = now_();
  Outcome<OpenBlob> opened = store_.find(digest);
  const Locked lock(mutex_);
  if (const auto found = places_.find(digest.text()); found != places_.end()) {
    if (is_current(*found->second, opened, now)) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().blob;
    }
    erase(found->second);
  }
  if (!opened) return std::unexpected(opened.error());
  std::shared_ptr<const OpenBlob> blob = std::make_shared<OpenBlob>(std::move(*opened));
  entries_.push_front({digest.text(), blob, now, std::nullopt});
  places_.emplace(entries_.front().digest, entries_.begin());
  if (entries_.size() > limit_) erase(std::prev(entries_.end()));
  return blob;
}

// `found`: what has the name now.
bool OpenBlobs::is_current(Entry& entry, const Outcome<OpenBlob>& found, Clock::time_point now) {
  if (found && found->file != entry.blob->file) return false;
  if (!found && found.error().code == ErrorClass::not_found) {
    if (now - entry.looked >= 2 * kLookAgain) return false;  // nobody is in the middle of reading it
    if (!entry.missing) entry.missing = now;
    if (now - *entry.missing >= kLookAgain) return false;
  } else {
    entry.missing.reset();
  }
  entry.looked = now;  // what cannot be looked at, such as a mount in trouble, is tried again as soon
  return true;
}

void OpenBlobs::forget(const Digest& digest) {
  const Locked lock(mutex_);
  if (const auto found = places_.find(digest.text()); found != places_.end()) erase(found->second);
}

void OpenBlobs::erase(Place entry) {
  places_.erase(entry->digest);
  entries_.erase(entry);
}

}  // namespace turnstile::content
