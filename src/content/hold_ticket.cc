// See hold_ticket.h.
#include "content/hold_ticket.h"

#include <algorithm>

#include "base/log.h"

namespace turnstile::content {

bool Endings::try_end(Ending& ending) {
  const Expected<Released> released = ending.hold.release(ending.result);
  if (!released && is_away(released.error())) return false;
  if (!released)
    log_warning("a hold was lost before it ended",
                {{"digest", ending.hold.resource()}, {"error", released.error().message}});
  // A removal that failed is tried again. A pull that succeeded must have left a reference, one that failed
  // none.
  const bool success = ending.result.success;
  const bool counted = ending.counted || (success && released);
  ending.claim.set_settled(ending.claim.settling() ? success : counted == success);
  return true;
}

void Endings::end(Hold hold, const WorkResult& result, Unsettled::Claim claim, bool counted) {
  Ending ending{std::move(hold), result, std::move(claim), counted};
  if (try_end(ending)) return;
  // Should this process end before the server is back, the next one settles it.
  ending.claim.set_settled(false);
  const Locked lock(mutex_);
  later_.push_back(std::move(ending));
}

bool Endings::retry() {
  std::vector<Ending> now;
  {
    const Locked lock(mutex_);
    now.swap(later_);
  }
  const auto left = std::find_if_not(now.begin(), now.end(), try_end);
  const bool all = left == now.end();
  now.erase(now.begin(), left);
  const Locked lock(mutex_);
  std::move(now.begin(), now.end(), std::back_inserter(later_));
  return all;
}

size_t Endings::count() const {
  const Locked lock(mutex_);
  return later_.size();
}

void HoldTicket::progress(int64_t done, int64_t total) {
  if (hold_) hold_.report_progress(uint64_t(done), uint64_t(std::max(done, total)));
}

bool HoldTicket::still_valid() {
  if (!hold_) return false;
  const Expected<void> renewed = hold_.renew();
  if (renewed) return true;
  if (is_away(renewed.error()) && Hold::Clock::now() < hold_.believed_until()) return true;
  failed("the hold was lost");  // so that this node can ask again
  return false;
}

void HoldTicket::end(const WorkResult& result) {
  if (!hold_) return;
  endings_->end(std::move(hold_), result, std::move(terms_.claim), terms_.counted);
  terms_.turn.reset();
}

}  // namespace turnstile::content
