// See hold_ticket.h.
#include "content/hold_ticket.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/plant.h"

namespace turnstile::content {

void HoldTicket::progress(int64_t done, int64_t total) {
  if (hold_) hold_->report_progress(uint64_t(done), uint64_t(std::max(done, total)));
}

bool HoldTicket::still_valid() {
  if (!hold_) return false;
  if (work_ == Work::removal && planted(Plant::late_unlink)) return true;
  const Expected<void> renewed = hold_->renew();
  if (renewed) return true;
  note_(renewed.error());
  // Somebody else may publish the same bytes meanwhile; that does no harm. To take something away, it would.
  if (work_ != Work::removal && is_away(renewed.error()) && hold_->is_believed()) return true;
  failed("the hold was lost");  // so that this node can ask again
  return false;
}

// That a blob was removed counts for those who wait for it, and for nobody else: what a node pulls while it
// is cut off comes back without the server's knowing, and whoever gives that up must not hear that it is
// gone.
bool HoldTicket::succeeded() {
  if (work_ != Work::removal) return end(WorkResult::succeeded());
  return end(WorkResult::succeeded({}, std::chrono::milliseconds(0)));
}

bool HoldTicket::end(const WorkResult& result) {
  if (!hold_) return false;
  const std::unique_ptr<ServerHold> hold = std::move(hold_);
  const Expected<bool> released = hold->release(result);
  if (!released) {
    note_(released.error());
    log_warning("a hold was lost before it ended", {{"error", released.error().message}});
  }
  if (work_ == Work::use_counted) return result.success && is_counted_();
  if (planted(Plant::assumed_release_counts)) return result.success;
  return result.success && released && *released;
}

}  // namespace turnstile::content
