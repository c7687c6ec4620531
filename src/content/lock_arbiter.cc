// See lock_arbiter.h. First how a use begins, then how it ends, then what is done in the background.
#include "content/lock_arbiter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "turnstile/operations.h"

namespace turnstile::content {
namespace {

using namespace std::chrono_literals;
using Claim = Unsettled::Claim;

constexpr auto kAwayFor = 1s;
constexpr auto kTick = 250ms;
constexpr auto kLookEvery = 5s;
constexpr auto kLateForgotten = 1min;  // a blob that nobody has asked about for so long is not late any more
// Not `pull`: that would be skipped. An operation without rules is a plain mutex.
constexpr const char* kPullAgain = "pull-again";

std::string waiting_text(const std::optional<WaitingStatus>& waiting) {
  if (!waiting || waiting->holder.empty()) return "another node is at it";
  if (waiting->done && waiting->total && *waiting->total > 0)
    return fmt::format("{} is at it ({} of {} bytes)", waiting->holder, *waiting->done, *waiting->total);
  return fmt::format("{} is at it", waiting->holder);
}

}  // namespace

LockRequest LockArbiter::request_for(const char* operation, const Digest& digest) {
  LockRequest request;
  request.operation = operation;
  request.resource = digest.text();
  request.scope = "resource";
  request.lease = 10s;
  request.monitor = true;
  return request;
}

ClientSettings LockArbiter::client_settings(const Settings& settings) {
  ClientSettings client;
  client.servers = settings.servers;
  client.node_id = settings.node;
  client.request_timeout = 1s;
  client.max_retries = 1;
  return client;
}

LockArbiter::LockArbiter(LockClient client, std::shared_ptr<Unsettled> unsettled, Options options)
    : client_(std::move(client)),
      unsettled_(std::move(unsettled)),
      options_(std::move(options)),
      places_(client_, endings_, options_.places),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

LockArbiter::~LockArbiter() {
  thread_.request_stop();
  thread_.join();
  places_.leave_all();
}

Decision LockArbiter::begin_write(const Digest& digest, int64_t) {
  return begin(digest, Decision::Kind::write);
}
Decision LockArbiter::begin_adoption(const Digest& digest) { return begin(digest, Decision::Kind::adopt); }

Decision LockArbiter::begin(const Digest& digest, Decision::Kind wanted) {
  // A stream of this node's own that has just been closed is given a moment to free the blob.
  Outcome<KeyLocks::Held> own_turn = turns_.take(digest.text(), kOwnPatience);
  if (!own_turn) return wait("this node is at it already");
  WaitingPlaces::Turn turn = places_.ask(digest);
  if (turn.waiting) return wait(std::move(turn.why));
  HoldTicket::Terms terms{turn.result ? std::move(turn.claim) : unsettled_->use(digest),
                          std::move(*own_turn)};
  if (!terms.claim) return wait("this node is still giving it up");
  if (turn.result && *turn.result) return decide(digest, wanted, std::move(**turn.result), std::move(terms));

  LockRequest request = request_for(operations::kPull, digest);
  request.stay_when_busy = wanted == Decision::Kind::write;
  request.request_id = turn.request_id;
  // A use that the others cannot see counted could be removed under us: then rather none.
  if (!away() && server_is_ != ServerIs::right)
    if (std::optional<std::string> wrong = check_server()) return {Decision::Kind::error, nullptr, *wrong};
  if (away())
    return refused(wanted, {ErrorCode::unavailable, "no lock server answers"}, std::move(terms.claim));
  Expected<LockResult> result = client_.try_lock(request);
  if (result) return decide(digest, wanted, std::move(*result), std::move(terms));
  note(result.error());
  return refused(wanted, result.error(), std::move(terms.claim));
}

Decision LockArbiter::decide(const Digest& digest, Decision::Kind wanted, LockResult result,
                             HoldTicket::Terms terms) {
  if (result.queued) return stay(digest, result, std::move(terms.claim));
  if (result.acquired) return go(digest, wanted, std::move(result.hold), std::move(terms));
  if (wanted == Decision::Kind::write && is_overdue(digest)) return pull_again(digest, std::move(terms));
  if (options_.references) return join(digest, std::move(terms));
  return {Decision::Kind::adopt, std::make_unique<ClaimTicket>(std::move(terms.claim), true), {}};
}

Decision LockArbiter::go(const Digest& digest, Decision::Kind wanted, Hold hold, HoldTicket::Terms terms) {
  if (hold.attempt() > 1) {
    options_.metrics->add(Count::takeovers);
    log_info("takes over",
             {{"digest", digest.text()}, {"attempt", hold.attempt()}, {"error", hold.previous_error()}});
  }
  if (options_.references) {
    // Before the work, not after it: then a blob that this node has never is without its reference. Work that
    // fails leaves one too many, and that is settled.
    terms.counted = true;
    if (const Expected<void> counted = options_.references->add(digest); !counted) {
      endings_->end(std::move(hold), WorkResult::failed(counted.error().message), std::move(terms.claim),
                    true);
      return {Decision::Kind::error, nullptr, counted.error().message};
    }
  }
  return {wanted, std::make_unique<HoldTicket>(endings_, std::move(hold), std::move(terms)), {}};
}

Decision LockArbiter::refused(Decision::Kind wanted, const ClientError& error, Claim claim) {
  if (error.code == ErrorCode::busy || error.reason == "busy") return wait("another node is at it");
  if (is_away(error)) {
    if (options_.without_server == WithoutServer::wait) return wait(error.message);
    options_.metrics->add(Count::pulls_without_server);
    return {wanted, std::make_unique<ClaimTicket>(std::move(claim), false), {}};
  }
  if (error.reason == "queue_full" || error.reason == "too_many_requests" || error.code == ErrorCode::lost)
    return wait(error.message);
  return {Decision::Kind::error, nullptr, error.message};
}

Decision LockArbiter::stay(const Digest& digest, const LockResult& queued, Claim claim) {
  LockRequest request = request_for(operations::kPull, digest);
  request.request_id = queued.request_id;
  const std::string why = waiting_text(queued.waiting);
  if (places_.keep(digest, request, claim, why)) {
    options_.metrics->add(Count::queued);
  } else if (const auto left = client_.cancel(request.operation, request.resource, request.request_id);
             !left) {
    note(left.error());  // a grant that is not claimed ends by itself
  }
  return wait(why);
}

Decision LockArbiter::pull_again(const Digest& digest, HoldTicket::Terms terms) {
  // The skip has counted this node as a user, which it is only if the work succeeds.
  terms.claim.set_settled(false);
  terms.counted = true;
  Expected<LockResult> result = client_.try_lock(request_for(kPullAgain, digest));
  if (!result) return refused(Decision::Kind::write, result.error(), std::move(terms.claim));
  log_warning("a blob that others have is not in sight here; pulled again", {{"digest", digest.text()}});
  return go(digest, Decision::Kind::write, std::move(result->hold), std::move(terms));
}

Decision LockArbiter::wait(std::string why) { return {Decision::Kind::wait, nullptr, std::move(why)}; }

bool LockArbiter::is_overdue(const Digest& digest) {
  const Clock::time_point now = Clock::now();
  const Locked lock(late_mutex_);
  std::erase_if(late_, [&](const auto& late) { return now - late.second.asked > kLateForgotten; });
  Late& late = late_.try_emplace(digest, Late{now, now}).first->second;
  late.asked = now;
  return now - late.since > options_.visible_within;
}

// ---- How a use ends.

Removal LockArbiter::forget(const Digest& digest) {
  {
    const Locked lock(late_mutex_);
    late_.erase(digest);
  }
  Claim claim = unsettled_->settle(digest);
  if (claim) return drop(digest, std::move(claim));
  unsettled_->mark(digest);  // somebody here begins to use it: that is waited for
  return {};
}

// A claim that is not said to be settled makes the background come here again.
Removal LockArbiter::drop(const Digest& digest, Claim claim) {
  if (options_.references) return drop_counted(digest, std::move(claim));
  if (away() || !counts_references(digest, claim)) return {};
  LockRequest request = request_for(operations::kDelete, digest);
  request.dereference = true;
  Expected<LockResult> result = client_.try_lock(request);
  if (result && result->acquired) return remove_under(digest, std::move(result->hold), std::move(claim));
  if (result) {
    // Others use it; or it was removed a while ago, and what lies there now is of a life that ended early.
    claim.set_settled(!result->references.empty() || !options_.is_there(digest));
  } else if (result.error().code == ErrorCode::refused) {
    claim.set_settled(result.error().reason != "busy");
  } else {
    note(result.error());
  }
  return {};
}

// Without the server's references nobody knows who else uses the blob: then it stays.
bool LockArbiter::counts_references(const Digest& digest, Claim& claim) {
  const Expected<References> references = client_.references(digest.text());
  if (references) return true;
  note(references.error());
  if (references.error().reason == "references_off") {
    log_warning("the server keeps no references, so blobs are not removed", {{"digest", digest.text()}});
    claim.set_settled(true);
  }
  return false;
}

Removal LockArbiter::remove_under(const Digest& digest, Hold hold, Claim claim) {
  const Expected<LaneStatus> status = client_.status(operations::kDelete, digest.text());
  if (!status || !status->waiters.empty()) {
    if (!status) note(status.error());
    endings_->end(std::move(hold), WorkResult::failed("others wait for it"), std::move(claim));
    return {};
  }
  return {Removal::Kind::remove_everywhere,
          std::make_unique<HoldTicket>(endings_, std::move(hold), HoldTicket::Terms{std::move(claim)})};
}

// ---- In the background.

void LockArbiter::resume(const std::vector<Digest>& used) {
  if (!options_.references) return unsettled_->mark_all(used);
  // What was counted and is not used: a life that ended between the two. The other way round, too.
  const Expected<std::vector<Digest>> counted = options_.references->own();
  if (!counted) {
    log_warning("this node's references cannot be read", {{"error", counted.error().message}});
    return unsettled_->mark_all(used);
  }
  std::vector<Digest> sorted = used, different;
  std::sort(sorted.begin(), sorted.end());
  std::set_symmetric_difference(sorted.begin(), sorted.end(), counted->begin(), counted->end(),
                                std::back_inserter(different));
  unsettled_->mark_all(different);
}

void LockArbiter::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    places_.sweep();
    look_for_server();
    if (!away() && endings_->count() > 0 && !endings_->retry()) note({ErrorCode::unavailable, "no answer"});
    while (!away() && !stop.stop_requested()) {
      std::optional<std::pair<Digest, Claim>> next = unsettled_->settle_next(Clock::now());
      if (!next) break;
      settle(next->first, std::move(next->second));
    }
    const Locked lock(wake_mutex_);
    wake_.wait_for(wake_mutex_, stop, kTick, [] { return false; });
  }
}

void LockArbiter::settle(const Digest& digest, Claim claim) {
  if (options_.uses(digest)) {
    if (options_.references) return claim.set_settled(count_use(digest));
    const Expected<References> added = client_.add_reference(digest.text());
    if (!added) note(added.error());
    claim.set_settled(added || added.error().reason == "references_off");
    return;
  }
  const Removal removal = drop(digest, std::move(claim));
  if (removal.kind != Removal::Kind::keep &&
      removal.carry_out(digest, [&] { return options_.remove(digest); }))
    options_.metrics->add(Count::removed_blobs);
}

void LockArbiter::look_for_server() {
  const Clock::time_point now = Clock::now();
  if (away() || now - looked_ < kLookEvery) return;
  looked_ = now;
  (void)check_server();
}

std::optional<std::string> LockArbiter::check_server() {
  const Expected<std::string> version = client_.version();
  if (!version && is_away(version.error())) {
    note(version.error());
    return std::nullopt;
  }
  const ReferencesBy expected = options_.references ? ReferencesBy::client : ReferencesBy::server;
  std::optional<std::string> wrong = version ? wrong_references(*version, expected) : std::nullopt;
  const ServerIs before = server_is_.exchange(wrong ? ServerIs::wrong : ServerIs::right);
  if (wrong && before != ServerIs::wrong) log_error("not the server for this plugin", {{"error", *wrong}});
  options_.metrics->set_lock_server(true, wrong);
  return wrong;
}

void LockArbiter::note(const ClientError& error) {
  if (!is_away(error)) return;
  options_.metrics->set_lock_server(false, "The lock server does not answer: " + error.message);
  const Clock::time_point now = Clock::now();
  const Clock::time_point before{
      Clock::duration(away_until_.exchange((now + kAwayFor).time_since_epoch().count()))};
  if (now - before > kAwayFor * 10)  // once for each time that it goes
    log_warning("the lock server cannot be reached", {{"error", error.message}});
}

}  // namespace turnstile::content
