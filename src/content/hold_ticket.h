// Tickets whose right comes from the lock server, and how they are given back to a server that may be away.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/sync.h"
#include "content/arbiter.h"
#include "content/key_locks.h"
#include "content/unsettled.h"
#include "turnstile/lock_client.h"

namespace turnstile::content {

// Whether the server could not be asked, rather than said no.
inline bool is_away(const ClientError& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::not_turnstile;
}

// Ends holds. One that cannot be ended now is kept and ended later, so that the waiters learn the result.
//
// Threads: any. Time: end() takes as long as the client is patient; retry() is for a background thread.
class Endings {
 public:
  // `counted`: whether this node was counted as a user of the blob before the work began, and not by its
  // success.
  void end(Hold hold, const WorkResult& result, Unsettled::Claim claim, bool counted = false)
      TS_EXCLUDES(mutex_);
  // False: the server is still away.
  bool retry() TS_EXCLUDES(mutex_);
  size_t count() const TS_EXCLUDES(mutex_);

 private:
  struct Ending {
    Hold hold;
    WorkResult result;
    Unsettled::Claim claim;
    bool counted;
  };
  // False: to be tried again.
  static bool try_end(Ending& ending);

  mutable Mutex mutex_;
  std::vector<Ending> later_ TS_GUARDED_BY(mutex_);
};

// Work under a hold: a pull, an adoption, or a removal.
class HoldTicket final : public Ticket {
 public:
  // What it has besides the hold: a turn among this node's own streams, and what the hold's success means.
  struct Terms {
    Unsettled::Claim claim;
    std::optional<KeyLocks::Held> turn{};
    bool counted = false;  // see Endings::end()
  };
  HoldTicket(std::shared_ptr<Endings> endings, Hold hold, Terms terms)
      : endings_(std::move(endings)), hold_(std::move(hold)), terms_(std::move(terms)) {}
  ~HoldTicket() override { failed("abandoned"); }

  void progress(int64_t done, int64_t total) override;
  bool still_valid() override;  // false ends it
  void succeeded() override { end(WorkResult::succeeded()); }
  void failed(const std::string& why) override { end(WorkResult::failed(why)); }

 private:
  void end(const WorkResult& result);

  const std::shared_ptr<Endings> endings_;
  Hold hold_;  // of nothing: ended
  Terms terms_;
};

// Work without a hold: what another node has finished, or what is done while there is no server.
class ClaimTicket final : public Ticket {
 public:
  // `told`: whether the server counts this node as a user already. What the end makes wrong is settled later.
  ClaimTicket(Unsettled::Claim claim, bool told) : claim_(std::move(claim)), told_(told) {}
  ~ClaimTicket() override { failed("abandoned"); }

  void progress(int64_t, int64_t) override {}
  bool still_valid() override { return bool(claim_); }
  void succeeded() override { end(told_); }
  void failed(const std::string&) override { end(!told_); }

 private:
  void end(bool settled) {
    if (!claim_) return;
    claim_.set_settled(settled);
    claim_ = {};
  }

  Unsettled::Claim claim_;  // of nothing: ended
  const bool told_;
};

}  // namespace turnstile::content
