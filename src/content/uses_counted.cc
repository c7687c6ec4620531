// The part of LockArbiter for clusters whose lock server keeps no references (S18): this node counts itself.
//
// All that a server with references does in one step takes a hold here, because of the one rule of
// NodeReferences: a blob's nodes become more only under a hold that excludes deletes. A pull and an adoption
// under a hold are counted in go(); what follows a skip, and what is put right later, takes a short hold of a
// lane of its own.
#include <re2/re2.h>

#include "base/log.h"
#include "content/lock_arbiter.h"
#include "turnstile/operations.h"

namespace turnstile::content {
namespace {

using Claim = Unsettled::Claim;

// The lane that run_once() takes for the same purpose. Without rules: a plain mutex.
constexpr const char* kReference = "reference";

}  // namespace

std::optional<std::string> LockArbiter::wrong_references(const std::string& version, ReferencesBy expected) {
  std::string found;
  if (!RE2::PartialMatch(version, R"re("references"\s*:\s*"(\w+)")re", &found)) return std::nullopt;
  const std::string wanted = expected == ReferencesBy::client ? "client" : "server";
  if (found == wanted) return std::nullopt;
  return "The lock server runs with --references " + found + " and this plugin with --references " + wanted +
         ": no blob could be removed. Start the plugins of all nodes with --references " + found +
         ", or the server with --references " + wanted + ".";
}

Decision LockArbiter::join(const Digest& digest, HoldTicket::Terms terms) {
  Expected<LockResult> guard =
      client_.lock(request_for(kReference, digest), LockClient::Clock::now() + kOwnPatience);
  if (!guard) {
    note(guard.error());
    if (guard.error().code == ErrorCode::timed_out) return wait("another node is at it");
    return refused(Decision::Kind::adopt, guard.error(), std::move(terms.claim));
  }
  // A delete since the skip has voided what the skip was about (S13).
  const Expected<LaneStatus> status = client_.status(operations::kPull, digest.text());
  const bool there = status && status->completion && status->completion->success;
  if (!there) {
    if (!status) note(status.error());
    endings_->end(std::move(guard->hold), WorkResult::succeeded(), {});
    return wait("it was removed meanwhile");
  }
  // From here on there may be a reference, and a ticket that is dropped makes it go.
  auto ticket = std::make_unique<ClaimTicket>(std::move(terms.claim), true);
  const Expected<void> counted = count_under(digest, std::move(guard->hold));
  if (counted) return {Decision::Kind::adopt, std::move(ticket), {}};
  if (counted.error().code != ErrorCode::storage) return wait(counted.error().message);
  return {Decision::Kind::error, nullptr, counted.error().message};
}

Expected<void> LockArbiter::count_under(const Digest& digest, Hold hold) {
  Expected<void> counted = options_.references->add(digest);
  const Expected<Released> released = hold.release(WorkResult::succeeded());
  if (!released) note(released.error());
  // Whether it was held to the end is not known, so a removal may have looked before the reference was there.
  if (counted && !released) return std::unexpected(released.error());
  return counted;
}

// Ends the use at once, also while the server is away; only to remove the files a lock is needed.
Removal LockArbiter::drop_counted(const Digest& digest, Claim claim) {
  const Expected<void> dropped = options_.references->drop(digest);
  const Expected<bool> used =
      dropped ? options_.references->is_used(digest) : std::unexpected(dropped.error());
  if (!used) {
    log_warning("a reference cannot be dropped now",
                {{"digest", digest.text()}, {"error", used.error().message}});
    return {};
  }
  claim.set_settled(*used);
  if (*used || away()) return {};
  Expected<LockResult> result = client_.try_lock(request_for(operations::kDelete, digest));
  if (!result) {
    note(result.error());
    return {};
  }
  if (!result->acquired) {
    // A skip: it was removed, just now or a while ago; then what lies there is of a life that ended early.
    claim.set_settled(!options_.is_there(digest));
    return {};
  }
  // This is the look that counts: from here on nobody can begin to use it.
  const Expected<bool> still = options_.references->is_used(digest);
  if (still && !*still) return remove_under(digest, std::move(result->hold), std::move(claim));
  endings_->end(std::move(result->hold), WorkResult::failed(still ? "others use it" : still.error().message),
                std::move(claim));
  return {};
}

// True: this node is counted.
bool LockArbiter::count_use(const Digest& digest) {
  const Expected<bool> has = options_.references->has(digest);
  if (has && *has) return true;
  Expected<LockResult> guard = client_.try_lock(request_for(kReference, digest));
  if (!guard) {
    note(guard.error());
    return false;
  }
  const Expected<void> counted = count_under(digest, std::move(guard->hold));
  if (!counted)
    log_warning("a use cannot be counted now",
                {{"digest", digest.text()}, {"error", counted.error().message}});
  return counted.has_value();
}

}  // namespace turnstile::content
