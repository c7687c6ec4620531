// The part of LockArbiter for clusters whose lock server keeps no references (S18): this node counts itself.
//
// All that a server with references does in one step takes a hold here, because of the one rule of
// NodeReferences: a blob's nodes become more only under a hold that excludes deletes. A pull and an adoption
// under a hold are counted in go(); what follows a skip, and what is put right later, takes a short hold of a
// lane of its own.
#include "base/log.h"
#include "content/lock_arbiter.h"
#include "turnstile/operations.h"

namespace turnstile::content {
namespace {

using namespace std::chrono_literals;

// The lane that run_once() takes for the same purpose. Without rules: a plain mutex.
constexpr const char* kReference = "reference";
constexpr auto kPatience = 300ms;  // containerd's whole node waits meanwhile

}  // namespace

Decision LockArbiter::join(const Digest& digest) {
  Expected<Grant> guard =
      server_->lock(request_for(kReference, digest), LockClient::Clock::now() + kPatience, {});
  if (!guard) {
    note(guard.error());
    if (guard.error().code == ErrorCode::timed_out) return wait("another node is working on it");
    return refused(Decision::Kind::adopt, guard.error(), false);
  }
  if (!guard->hold) return wait("another node is working on it");
  // A delete since the skip has voided what the skip was about (S13).
  const Expected<LaneStatus> status = server_->status(operations::kPull, digest.text());
  const bool there = status && status->completion && status->completion->success;
  if (!there) {
    if (!status) note(status.error());
    (void)guard->hold->release(WorkResult::succeeded());
    return wait("it was removed meanwhile");
  }
  const Expected<void> counted = count_under(digest, std::move(guard->hold));
  if (counted) return {Decision::Kind::adopt, std::make_unique<FreeTicket>([] { return true; }), {}, true};
  if (counted.error().code != ErrorCode::storage) return wait(counted.error().message, true);
  return {Decision::Kind::error, nullptr, counted.error().message, true};
}

Expected<void> LockArbiter::count_under(const Digest& digest, std::unique_ptr<ServerHold> hold) {
  Expected<void> counted = options_.references->add(digest);
  const Expected<bool> released = hold->release(WorkResult::succeeded());
  if (!released) note(released.error());
  // Whether it was held to the end is not known, so a removal may have looked before the reference was there.
  if (counted && !released) return std::unexpected(released.error());
  if (counted && !*released)
    return std::unexpected(
        ClientError{ErrorCode::lost, "whether it was counted in time is not known", {}, {}});
  return counted;
}

// Ends the use at once, also while the server is away; only to remove the files a lock is needed.
Removal LockArbiter::drop_counted(const Digest& digest, bool is_there) {
  const Expected<void> dropped = options_.references->drop(digest);
  const Expected<bool> used =
      dropped ? options_.references->is_used(digest) : std::unexpected(dropped.error());
  if (!used) {
    log_warning("a reference cannot be dropped now",
                {{"digest", digest.text()}, {"error", used.error().message}});
    return {};
  }
  if (*used) return {Removal::Kind::settled};
  if (away()) return {};
  Expected<Grant> grant = server_->try_lock(request_for(operations::kDelete, digest));
  if (!grant) {
    note(grant.error());
    return {};
  }
  // A skip: it was removed, just now or a while ago; then what lies there is of a life that ended early.
  if (!grant->hold) return {is_there ? Removal::Kind::later : Removal::Kind::settled};
  // This is the look that counts: from here on nobody can begin to use it.
  const Expected<bool> still = options_.references->is_used(digest);
  if (still && !*still) return remove_under(digest, std::move(grant->hold));
  (void)grant->hold->release(WorkResult::failed(still ? "others use it" : still.error().message));
  return {still ? Removal::Kind::settled : Removal::Kind::later};
}

std::vector<Digest> LockArbiter::counted() {
  if (!options_.references) return {};
  const Expected<std::vector<Digest>> own = options_.references->own();
  if (own) return *own;
  log_warning("this node's references cannot be read", {{"error", own.error().message}});
  return {};
}

// True: this node is counted.
bool LockArbiter::count_use(const Digest& digest) {
  const Expected<bool> has = options_.references->has(digest);
  if (has && *has) return true;
  Expected<Grant> guard = server_->try_lock(request_for(kReference, digest));
  if (!guard || !guard->hold) {
    if (!guard) note(guard.error());
    return false;
  }
  const Expected<void> counted = count_under(digest, std::move(guard->hold));
  if (!counted)
    log_warning("a use cannot be counted now",
                {{"digest", digest.text()}, {"error", counted.error().message}});
  return counted.has_value();
}

}  // namespace turnstile::content
