// See background_verification.h.
#include "content/background_verification.h"

#include <algorithm>

#include "base/log.h"

namespace turnstile::content {

BackgroundVerification::BackgroundVerification(ContentStore& store, Metrics& metrics,
                                               std::chrono::milliseconds every)
    : store_(store),
      metrics_(metrics),
      every_(every),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void BackgroundVerification::run(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  constexpr double kShare = 0.9;  // of the time: reading takes some, too
  while (!stop.stop_requested()) {
    const Clock::time_point next = Clock::now() + every_;
    const std::vector<BlobInfo> all = store_.all();
    double bytes = 0;
    for (const BlobInfo& info : all) bytes += double(info.size);
    Pace pace(bytes / std::chrono::duration<double>(every_ * kShare).count(), stop);
    if (!verify_blobs(store_.blobs(), all, pace, [this](Finding finding) { note(std::move(finding)); }))
      return;
    (void)pace.wait(
        std::max(std::chrono::duration_cast<milliseconds>(next - Clock::now()), milliseconds(10)));
  }
}

void BackgroundVerification::note(Finding finding) {
  using enum Finding::Kind;
  if (finding.kind == intact) {
    reported_.erase(finding.digest);
    return;
  }
  using Mending = ContentStore::Mending;
  const Mending mended = store_.mend(finding);
  if (mended == Mending::needless || !reported_.insert(finding.digest).second) return;
  const std::string digest = finding.digest.text();
  switch (finding.kind) {
    case damaged:
      metrics_.add(Count::damaged_blobs);
      return log_error(
          mended == Mending::done
              ? "a blob that this node uses holds other bytes; put away: remove its image and "
                "pull it again"
          : mended == Mending::elsewhere
              ? "a blob that this node uses holds other bytes, on another node's disk: remove its "
                "image and pull it again; it is pulled to this node's disk then"
              : "a blob that this node uses holds other bytes, and could not be put away",
          {{"digest", digest}});
    case gone:
      // A mount may be away, and come again.
      if (store_.blobs().has_read_roots())
        return log_warning("a blob that this node uses is not in sight", {{"digest", digest}});
      metrics_.add(Count::lost_blobs);
      return log_error(
          "a blob that this node uses is in no root any more: remove its image and pull it again",
          {{"digest", digest}});
    case unpublished:
      return log_warning("a blob's file was gone; published again from this node's own name",
                         {{"digest", digest}});
    default:
      return log_warning("a blob that this node uses cannot be read",
                         {{"digest", digest}, {"error", finding.why}});
  }
}

}  // namespace turnstile::content
