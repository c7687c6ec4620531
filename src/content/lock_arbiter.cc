// See lock_arbiter.h. First how a use begins, then how it ends, then what is asked now and then.
#include "content/lock_arbiter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/plant.h"
#include "turnstile/operations.h"

namespace turnstile::content {
namespace {

using namespace std::chrono_literals;

constexpr auto kAwayFor = 1s;
constexpr auto kLookEvery = 3s;
constexpr auto kLateForgotten = 1min;  // a blob that nobody has asked about for so long is not late any more
// Not `pull`: that would be skipped. An operation without rules is a plain mutex.
constexpr const char* kPullAgain = "pull-again";
constexpr const char* kName = "node-name";
constexpr const char* kNames = "turnstile-content/";  // before each node's; a credential must allow it

}  // namespace

LockRequest LockArbiter::request_for(const char* operation, const Digest& digest) {
  LockRequest request;
  request.operation = operation;
  request.resource = digest.text();
  request.scope = "resource";
  request.lease = 10s;
  return request;
}

LockArbiter::LockArbiter(std::unique_ptr<LockServer> server, Options options)
    : server_(std::move(server)), options_(std::move(options)), places_(*server_, options_.places) {}

LockArbiter::~LockArbiter() { places_.leave_all(); }

Decision LockArbiter::begin_write(const Digest& digest, int64_t) {
  return begin(digest, Decision::Kind::write);
}
Decision LockArbiter::begin_adoption(const Digest& digest) { return begin(digest, Decision::Kind::adopt); }

Decision LockArbiter::begin(const Digest& digest, Decision::Kind wanted) {
  if (std::optional<std::string> trouble = name_trouble())
    return {Decision::Kind::error, nullptr, std::move(*trouble)};
  WaitingPlaces::Turn turn = places_.ask(digest);
  if (turn.waiting) return wait(std::move(turn.why), true);
  // A skip that has lain here while the server began another life may be forgotten: asked again.
  if (planted(Plant::old_skip_counts)) turn.life = server_life();
  if (turn.result && *turn.result && (!(**turn.result).skipped || turn.life == server_life()))
    return decide(digest, wanted, std::move(**turn.result), turn.life);
  const bool was_queued = turn.result.has_value();

  // A use that the others cannot see counted could be removed under us: then rather none.
  if (!away() && !is_right_server())
    if (std::optional<std::string> wrong = check_server())
      return {Decision::Kind::error, nullptr, *wrong, was_queued};
  if (away()) return refused(wanted, {ErrorCode::unavailable, "no lock server answers"}, was_queued);
  LockRequest request = request_for(operations::kPull, digest);
  request.monitor = true;
  request.stay_when_busy = wanted == Decision::Kind::write;
  request.request_id = turn.request_id;
  const std::string asked_in = server_life();
  Expected<Grant> grant = server_->try_lock(request);
  if (grant) return decide(digest, wanted, std::move(*grant), asked_in);
  note(grant.error());
  return refused(wanted, grant.error(), was_queued || is_away(grant.error()));
}

Decision LockArbiter::decide(const Digest& digest, Decision::Kind wanted, Grant grant,
                             const std::string& asked_in) {
  if (grant.queued) return stay(digest, grant, asked_in);
  if (grant.hold) return go(digest, wanted, std::move(grant.hold), HoldTicket::Work::use);
  if (wanted == Decision::Kind::write && is_overdue(digest))
    return pull_again(digest, is_still_counted(asked_in));
  if (options_.references) return join(digest);
  Decision adopt;
  adopt.kind = Decision::Kind::adopt;
  adopt.ticket = std::make_unique<FreeTicket>(is_still_counted(asked_in));
  adopt.may_count = true;
  return adopt;
}

Decision LockArbiter::go(const Digest& digest, Decision::Kind wanted, std::unique_ptr<ServerHold> hold,
                         HoldTicket::Work work, std::function<bool()> is_counted) {
  if (hold->attempt() > 1) {
    options_.metrics->add(Count::takeovers);
    log_info("this node takes over a download",
             {{"digest", digest.text()}, {"attempt", hold->attempt()}, {"error", hold->previous_error()}});
  }
  if (options_.references) {
    // Before the work, not after it: then a blob that this node has never is without its reference. Work that
    // fails leaves one too many, and that is cleared away.
    work = HoldTicket::Work::use_counted;
    is_counted = [] { return true; };
    if (const Expected<void> counted = options_.references->add(digest); !counted) {
      (void)hold->release(WorkResult::failed(counted.error().message));
      return {Decision::Kind::error, nullptr, counted.error().message, true};
    }
  }
  return {
      wanted, std::make_unique<HoldTicket>(std::move(hold), work, noting(), std::move(is_counted)), {}, true};
}

Decision LockArbiter::refused(Decision::Kind wanted, const ClientError& error, bool may_count) {
  if (error.code == ErrorCode::busy || error.reason == "busy")
    return wait("another node is working on it", may_count);
  if (is_away(error)) {
    if (options_.without_server == WithoutServer::wait) return wait(error.message, may_count);
    options_.metrics->add(Count::pulls_without_server);
    // Nobody counts it: it is used only if the file system keeps it for this node.
    return {wanted, std::make_unique<FreeTicket>([] { return false; }), {}, true, true};
  }
  if (error.reason == "queue_full" || error.reason == "too_many_requests" || error.code == ErrorCode::lost)
    return wait(error.message, may_count);
  return {Decision::Kind::error, nullptr, error.message, may_count};
}

Decision LockArbiter::stay(const Digest& digest, const Grant& queued, const std::string& asked_in) {
  LockRequest request = request_for(operations::kPull, digest);
  request.monitor = true;
  request.request_id = queued.request_id;
  if (places_.keep(digest, request, queued.waits_for, asked_in)) {
    options_.metrics->add(Count::queued);
  } else {
    server_->cancel(request);
  }
  return wait(queued.waits_for, true);
}

Decision LockArbiter::pull_again(const Digest& digest, std::function<bool()> counted_by_skip) {
  LockRequest request = request_for(kPullAgain, digest);
  request.monitor = true;
  Expected<Grant> grant = server_->try_lock(request);
  if (!grant) {
    note(grant.error());
    return refused(Decision::Kind::write, grant.error(), true);
  }
  if (!grant->hold) return wait("another node is working on it", true);
  log_warning("a blob that others have is not in sight here; pulled again", {{"digest", digest.text()}});
  // The skip has counted this node already.
  return go(digest, Decision::Kind::write, std::move(grant->hold), HoldTicket::Work::use_counted,
            std::move(counted_by_skip));
}

Decision LockArbiter::wait(std::string why, bool may_count) {
  return {Decision::Kind::wait, nullptr, std::move(why), may_count};
}

std::function<bool()> LockArbiter::is_still_counted(const std::string& counted_by) {
  return [this, counted_by] { return counted_by == server_life() || planted(Plant::forgotten_count_counts); };
}

HoldTicket::Note LockArbiter::noting() {
  return [this](const ClientError& error) { note(error); };
}

bool LockArbiter::is_overdue(const Digest& digest) {
  const Clock::time_point now = options_.now();
  const Locked lock(late_mutex_);
  std::erase_if(late_, [&](const auto& late) { return now - late.second.asked > kLateForgotten; });
  Late& late = late_.try_emplace(digest, Late{now, now}).first->second;
  late.asked = now;
  return now - late.since > options_.visible_within;
}

std::vector<bool> LockArbiter::confirm_uses(const std::vector<Digest>& used) {
  std::vector<bool> confirmed(used.size(), false);
  if (away() || wrong_server()) return confirmed;
  if (options_.references) {
    for (size_t i = 0; i < used.size() && !away(); ++i) confirmed[i] = count_use(used[i]);
    return confirmed;
  }
  std::vector<std::string> names;
  names.reserve(used.size());
  for (const Digest& digest : used) names.push_back(digest.text());
  const std::vector<Expected<void>> added = server_->add_references(names);
  for (size_t i = 0; i < added.size(); ++i) {
    if (!added[i]) note(added[i].error());
    confirmed[i] = added[i].has_value();
  }
  return confirmed;
}

// ---- How a use ends.

// A life never comes back: the one that was seen before the question and is there behind it has answered.
Removal LockArbiter::end_use(const Digest& digest, bool is_there) {
  const std::string before = server_life();
  Removal removal = ask_end(digest, is_there);
  if (!removal.ticket) return removal;
  const std::optional<ServerLife> after = look();
  removal.is_certain = after && after->id == before;
  if (removal.is_certain && !options_.references) removal.life = before;
  return removal;
}

std::string LockArbiter::ask_life() { return !away() && look() ? life() : std::string(); }

bool LockArbiter::counts_nobody(const Digest& digest) {
  if (options_.references || away()) return false;
  const Expected<uint32_t> users = server_->references(digest.text());
  if (!users) note(users.error());
  return users && *users == 0;
}

Removal LockArbiter::ask_end(const Digest& digest, bool is_there) {
  {
    const Locked lock(late_mutex_);
    late_.erase(digest);
  }
  if (wrong_server()) return {};
  if (options_.references) return drop_counted(digest, is_there);
  if (away()) return {};
  // Not by a delete with dereference: one whose answer or whose end was lost waits for its turn, however long
  // that takes, and would then end a use that has begun since. This waits for nobody.
  const Expected<uint32_t> users = server_->release_reference(digest.text());
  if (!users) {
    note(users.error());
    return {is_away(users.error()) ? Removal::Kind::unknown : Removal::Kind::not_asked};
  }
  if (*users > 0) return {Removal::Kind::settled};
  LockRequest request = request_for(operations::kDelete, digest);
  request.dereference = planted(Plant::queued_end_of_use);
  Expected<Grant> grant = server_->try_lock(request);
  if (!grant) {
    // Whatever becomes of it: one that nobody waits for any more is refused, or runs out.
    note(grant.error());
    const bool used = grant.error().reason == "referenced";
    return {used ? Removal::Kind::settled : Removal::Kind::later};
  }
  if (grant->hold) return remove_under(digest, std::move(grant->hold));
  // Others than these plugins have removed it a while ago, for the server keeps no removal of theirs.
  return {is_there ? Removal::Kind::later : Removal::Kind::settled};
}

Removal LockArbiter::remove_under(const Digest& digest, std::unique_ptr<ServerHold> hold) {
  const Expected<LaneStatus> status = server_->status(operations::kDelete, digest.text());
  if (!status || !status->waiters.empty()) {
    if (!status) note(status.error());
    (void)hold->release(WorkResult::failed("others wait for it"));
    return {Removal::Kind::later};
  }
  return {Removal::Kind::remove_everywhere,
          std::make_unique<HoldTicket>(std::move(hold), HoldTicket::Work::removal, noting())};
}

// ---- Now and then.

void LockArbiter::look_after() {
  places_.sweep();
  const Clock::time_point now = options_.now();
  if (away() || now - looked_ < kLookEvery) return;
  looked_ = now;
  if (!check_server() && !away()) (void)claim_name();
}

std::string LockArbiter::server_life() const {
  const Locked lock(life_mutex_);
  return life_ ? life_->id : std::string();
}

std::string LockArbiter::life() const {
  const Locked lock(life_mutex_);
  const bool counts = life_ && !options_.references && !wrong_with(*life_);
  return counts ? life_->id : std::string();
}

std::optional<std::string> LockArbiter::wrong_with(const ServerLife& life) const {
  return wrong_references(life, options_.references ? ReferencesBy::client : ReferencesBy::server);
}

std::optional<std::string> LockArbiter::wrong_server() const {
  const Locked lock(life_mutex_);
  return life_ ? wrong_with(*life_) : std::nullopt;
}

bool LockArbiter::is_right_server() const { return !server_life().empty() && !wrong_server(); }

bool LockArbiter::is_settled() {
  const Locked lock(life_mutex_);
  return life_ && life_->age + (options_.now() - life_seen_) >= options_.settled_after;
}

std::optional<std::string> LockArbiter::wrong_references(const ServerLife& life, ReferencesBy expected) {
  if (!life.keeps_references || *life.keeps_references == (expected == ReferencesBy::server))
    return std::nullopt;
  const std::string found = *life.keeps_references ? "server" : "client";
  const std::string wanted = *life.keeps_references ? "client" : "server";
  return "The lock server runs with --references " + found + " and this plugin with --references " + wanted +
         ": no blob could be removed. Start the plugins of all nodes with --references " + found +
         ", or the server with --references " + wanted + ".";
}

std::optional<ServerLife> LockArbiter::look() {
  const Clock::time_point asked = options_.now();
  const Expected<ServerLife> life = server_->life();
  if (!life) {
    note(life.error());
    return std::nullopt;
  }
  bool is_new = false;
  {
    const Locked lock(life_mutex_);
    is_new = !life_ || life_->id != life->id;
    if (life_ && is_new)
      log_info("the lock server was restarted; this node tells it again what it uses", {{"life", life->id}});
    // The first one, too: what was confirmed before may have been by one that nobody here has seen.
    if (is_new && !planted(Plant::new_life_unnoticed)) forgotten_ = true;
    life_ = *life;
    life_seen_ = asked;
  }
  if (!is_new) return *life;
  if (const std::optional<std::string> wrong = wrong_server())
    log_error("the server's settings do not fit this plugin", {{"error", *wrong}});
  if (life->forgets)
    log_warning(
        "the lock server keeps its state in memory (--store memory): when it stops, nobody knows which "
        "blobs are in use; give it --store file:DIR");
  return *life;
}

std::optional<std::string> LockArbiter::check_server() {
  if (!look()) return std::nullopt;
  std::optional<std::string> wrong = wrong_server();
  if (!not_let_in_) options_.metrics->set_lock_server(true, wrong);  // anybody may see what a server is
  return wrong;
}

std::optional<std::string> LockArbiter::claim_name() {
  if (options_.identity.empty()) return std::nullopt;
  const Locked lock(name_mutex_);
  if (name_ && name_->is_believed()) {  // the library renews it
    const std::string now = server_life();
    if (name_life_ == now && !not_let_in_) return std::nullopt;
    // A server that has begun anew may have forgotten it, and given it to another.
    const Expected<void> renewed = name_->renew();
    if (renewed) {
      name_life_ = now;
      let_in();
      return std::nullopt;
    }
    note(renewed.error());
    if (is_away(renewed.error())) return std::nullopt;
  }
  name_.reset();  // first: it has the same request id, and its end would end the next one
  LockRequest request;
  request.operation = kName;
  request.resource = kNames + options_.node;
  request.request_id = options_.identity;  // so that a restart of this plugin gets its own hold again
  request.lease = 30s;
  request.info = options_.machine;
  const std::string asked_in = server_life();
  Expected<Grant> grant = server_->try_lock(request);
  if (grant && grant->hold) {
    name_ = std::move(grant->hold);
    name_life_ = asked_in;
    name_is_open_ = false;
    let_in();
    set_name_trouble(std::nullopt, {});
    return std::nullopt;
  }
  if (!grant && grant.error().code != ErrorCode::busy) {
    name_refused(grant.error());
    return std::nullopt;
  }
  name_is_open_ = false;
  const Expected<LaneStatus> status = server_->status(request.operation, request.resource);
  const std::string who = status && status->holder ? status->holder->info : "another machine";
  std::string wrong = fmt::format(
      "The node name {} belongs to {}. Two nodes with one name would count as one, and lose content: give "
      "this "
      "one another --node. If that one is gone for good, it is free after 30 seconds.",
      options_.node, who);
  set_name_trouble(wrong, "two nodes of one name");
  return wrong;
}

void LockArbiter::name_refused(const ClientError& error) {
  if (error.reason == "forbidden") {
    // Not open: on disks of the nodes' own nothing else would tell two machines of one name apart. What the
    // node has can be read meanwhile.
    set_name_trouble(fmt::format("The lock server does not let this node take its own name: {}. If its "
                                 "credential has `resources`, add \"{}\" to them.",
                                 error.message, kNames),
                     "this node may not take its name");
    return;
  }
  note(error);
  if (error.code != ErrorCode::refused && error.code != ErrorCode::invalid) return;  // it was not asked
  // It says nothing about the name. A server that is full must not keep this node from giving something up.
  if (!std::exchange(name_is_open_, true))
    log_warning("the lock server refuses this node's name; another machine of this name would not be noticed",
                {{"error", error.message}});
}

bool LockArbiter::has_its_name() {
  if (options_.identity.empty()) return true;
  if (name_trouble()) return false;
  const Locked lock(name_mutex_);
  return name_is_open_ || (name_ && name_->is_believed());
}

std::optional<std::string> LockArbiter::name_trouble() const {
  const Locked lock(trouble_mutex_);
  return name_trouble_;
}

void LockArbiter::set_name_trouble(std::optional<std::string> trouble, const char* headline) {
  if (trouble) options_.metrics->set_lock_server(true, trouble);
  const Locked lock(trouble_mutex_);
  if (trouble && !name_trouble_) log_error(headline, {{"error", *trouble}});
  if (!trouble && name_trouble_) log_info("this node's name is its own again");
  name_trouble_ = std::move(trouble);
}

void LockArbiter::let_in() {
  if (!not_let_in_.exchange(false)) return;
  options_.metrics->set_lock_server(true, std::nullopt);
  log_info("the lock server lets this node in again");
}

void LockArbiter::note(const ClientError& error) {
  if (error.code == ErrorCode::unauthenticated) {
    options_.metrics->set_lock_server(false, "The lock server does not let this node in: " + error.message);
    if (!not_let_in_.exchange(true))
      log_error("the lock server does not let this node in; look at --credential-file, --cert and --key",
                {{"error", error.message}});
    return;
  }
  if (!is_away(error)) return;
  options_.metrics->set_lock_server(false, "The lock server does not answer: " + error.message);
  const Clock::time_point now = options_.now();
  const Clock::time_point before{
      Clock::duration(away_until_.exchange((now + kAwayFor).time_since_epoch().count()))};
  if (now - before > kAwayFor * 10)  // once for each time that it goes
    log_warning("the lock server cannot be reached", {{"error", error.message}});
}

}  // namespace turnstile::content
