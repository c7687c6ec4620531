#include "replica/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "base/plant.h"
#include "replica/server_entry.h"

namespace turnstile {
namespace {

using etcd::Answer;
using etcd::Failure;
using etcd::LeaseId;
using etcd::Revision;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFollowEvery = milliseconds(150);
constexpr Duration kLeadEvery = milliseconds(500);
constexpr Duration kTryAgain = milliseconds(300);
constexpr Duration kAfterFailedTakeOver = seconds(3);
constexpr Duration kForOthers = seconds(1);  // who are ready
constexpr Duration kRegisterEvery = seconds(2);
constexpr Duration kTellNumberEvery = seconds(10);
constexpr Duration kSilent = seconds(25);  // who has read something has told of it by then
// For etcd to say whether it lets this server in: a password takes it a tenth of a second of its processor,
// and a machine that boots has other things to do. After that the server starts, and waits for etcd as for
// one that is away.
constexpr auto kCheckWithin = seconds(7);

}  // namespace

Replica::Replica(etcd::Client& client, ReplicaSettings settings, ReplicaOwner& owner, EtcdTiming timing)
    : client_(client),
      settings_(std::move(settings)),
      keys_(settings_.prefix),
      owner_(owner),
      timing_(std::move(timing)),
      call_timeout_(std::chrono::duration_cast<milliseconds>(settings_.lease) / 4),
      image_(std::make_unique<EtcdImage>(client_, keys_)) {}

Replica::~Replica() = default;

Result<void> Replica::check() {
  etcd::RangeRequest request;
  request.begin = keys_.format();
  const auto is_wrong = [](const etcd::CallError& error) {
    return error.failure == Failure::denied || error.failure == Failure::refused;
  };
  const auto found = client_.range(request, kCheckWithin);
  if (!found && is_wrong(found.error()))
    return fail(
        fmt::format("etcd does not let this server read {}/: {}", keys_.prefix(), found.error().message));
  if (!found) return {};
  if (Result<void> known = check_format(*found); !known) return known;
  // Takes away a key that nobody makes.
  etcd::Transaction nothing;
  nothing.erases.push_back({keys_.prefix() + "/nothing", {}});
  const auto written = client_.commit(nothing, kCheckWithin);
  if (!written && is_wrong(written.error()))
    return fail(
        fmt::format("etcd does not let this server write {}/: {}", keys_.prefix(), written.error().message));
  return {};
}

Result<void> Replica::check_format(const etcd::RangeAnswer& found) const {
  if (found.values.empty() || found.values.front().value == kEtcdFormat) return {};
  if (found.values.front().value == kEtcdCopying)
    return fail(fmt::format(
        "etcd's {} has only a part of a store: copy-store is at work, or did not come to its end. Erase it "
        "(etcdctl del --prefix {}/) and copy again.",
        keys_.prefix(), keys_.prefix()));
  return fail(
      fmt::format("etcd's {} says '{}', and this program knows only '{}': it was written by another version, "
                  "or by something else. Take another prefix, or that version.",
                  keys_.format(), found.values.front().value.substr(0, 60), kEtcdFormat));
}

Duration Replica::turn() { return led_term_ != 0 ? lead() : stand_by(); }

Duration Replica::stand_by() {
  hold_lease();
  watch_leader();
  const Answer<std::optional<etcd::KeyValue>> leader = read_leader();
  if (!leader) {
    change_view([](ReplicaView& view) { view.leader.clear(), view.in_step = false; });
    return problem(leader.error());
  }
  if (!*leader) return campaign();
  // Also after an election whose outcome was not known.
  const LeaseId lease = lease_.load();
  if (lease != LeaseId::none && (*leader)->lease == lease) return take_over((*leader)->create_revision);
  const Duration next = follow(**leader);
  return lease == LeaseId::none ? std::max(next, kTryAgain) : next;
}

// Beforehand, because an etcd that is full grants none. Who has none can still follow.
void Replica::hold_lease() {
  if (lease_.load() != LeaseId::none) return;
  const Duration sent = boot();
  const Answer<etcd::LeaseAnswer> granted = client_.grant(settings_.lease, call_timeout_);
  if (!granted) {
    problem(granted.error());
    return;
  }
  lease_until_ = (sent + granted->ttl).count();
  lease_ = granted->lease;
  registered_.reset();
}

void Replica::watch_leader() {
  if (watch_lost_.exchange(false)) watch_.reset();
  if (watch_) return;
  watch_ = client_.watch(
      keys_.leader(), {}, 0, [this](const std::vector<etcd::WatchEvent>&, Revision) { hurry(); },
      [this](const etcd::CallError&) { watch_lost_ = true; });
}

Answer<std::optional<etcd::KeyValue>> Replica::read_leader() {
  etcd::RangeRequest request;
  request.begin = keys_.leader();
  Answer<etcd::RangeAnswer> answer = client_.range(request, call_timeout_);
  if (!answer) return std::unexpected(answer.error());
  if (answer->values.empty()) return std::nullopt;
  return std::move(answer->values.front());
}

// The key's revision is the term. When the outcome is not known, the next look at it tells.
Duration Replica::campaign() {
  bool has_time = false;  // somebody else may be ready to serve at once, and this server is not
  change_view([&](ReplicaView& view) {
    if (!view.leader.empty() && !view.in_step && view.servers.size() > 1) has_time = true;
    view.leader.clear();
  });
  if (has_time) not_before_ = std::max(not_before_, boot() + kForOthers);
  if (boot() < not_before_) return kTryAgain;
  // keep_lease() may have found that it is gone, meanwhile. A key without a lease would never end.
  const LeaseId lease = lease_.load();
  if (lease == LeaseId::none) return kTryAgain;
  etcd::Transaction transaction;
  transaction.guards.push_back({keys_.leader(), 0});
  transaction.puts.push_back({keys_.leader(), settings_.url, lease});
  const Answer<etcd::TransactionAnswer> answer = client_.commit(transaction, call_timeout_);
  if (!answer) {
    if (answer.error().failure == Failure::gone) drop_lease();
    if (answer.error().failure == Failure::no_space)  // it could not take over: nobody can
      change_view([](ReplicaView& view) { view.in_step = false; });
    return problem(answer.error());
  }
  no_problem();
  return answer->done ? take_over(answer->revision) : Duration(0);
}

Duration Replica::follow(const etcd::KeyValue& leader) {
  // A key of this server's own, and not of its lease, is left over from a term that has ended (a restart):
  // until its time is over there is no leader, and nobody is to be sent back here.
  const bool left_over = leader.value == settings_.url;
  look_at_namesake(left_over);
  change_view([&](ReplicaView& view) {
    view.leader = left_over ? std::string() : leader.value;
    view.term = leader.create_revision;
  });
  const auto look =
      followed_term_ == leader.create_revision ? EtcdImage::Look::new_ones : EtcdImage::Look::all;
  const uint64_t before = image_->next_number();
  const Answer<void> read = image_->refresh(0, look, call_timeout_);
  if (!read && read.error().failure != Failure::compacted) {
    change_view([](ReplicaView& view) { view.in_step = false; });
    return problem(read.error());
  }
  // Another look at once, which reads all.
  if (image_->in_doubt()) {
    begin_anew();
    return Duration(0);
  }
  if (read) {
    followed_term_ = leader.create_revision;
    if (const Result<void> done = hand_on(); !done) {
      if (!std::exchange(told_damage_, true))
        log_error("this server could not take over", {{"error", done.error().message}});
      change_view([](ReplicaView& view) { view.in_step = false; });
      begin_anew();
      return kAfterFailedTakeOver;
    }
    told_damage_ = false;
  }
  if (lease_.load() != LeaseId::none) no_problem();
  const uint64_t lag = image_->next_number() - before;  // what had come since the last look
  change_view([&](ReplicaView& view) {
    view.in_step = read.has_value();
    view.lag_batches = lag;
  });
  register_self(false, image_->next_number(), lag);
  read_servers();
  return kFollowEvery;
}

// What is left over goes within a lease, or two if etcd changes its own leader.
void Replica::look_at_namesake(bool there) {
  if (!there) namesake_since_.reset();
  if (there && !namesake_since_) namesake_since_ = boot();
  if (!there || boot() < *namesake_since_ + 3 * settings_.lease || std::exchange(told_namesake_, true))
    return;
  log_warning(
      "another server leads, and says that it is reached as this one is: give each server an --advertise "
      "of its own",
      {{"url", settings_.url}});
}

// What is new, to the owner, so that a take-over has only the last of it to load.
Result<void> Replica::hand_on() {
  if (!owner_.follows()) return {};
  const Result<EtcdImage::End> end = image_->load([this](const Record& record) { owner_.follow(record); });
  if (!end) return std::unexpected(end.error());
  owner_.followed(end->report.latest);
  return {};
}

// After any doubt: nothing is kept that was read before.
void Replica::begin_anew() {
  followed_term_ = 0;
  owner_.forget_followed();
  image_ = std::make_unique<EtcdImage>(client_, keys_);
}

Duration Replica::take_over(Revision term) {
  log_info("elected", {{"term", term}, {"name", settings_.name}});
  watch_.reset();
  doubtful_ = false;
  term_ = term;
  {
    const Locked lock(mutex_);
    doubt_.clear();
  }
  const Answer<void> read = read_all(term);
  if (!read) {
    stand_down(fmt::format("the store could not be read: {}", read.error().message));
    return kTryAgain;
  }
  std::unique_ptr<Journal> journal = make_etcd_journal(
      client_, keys_, {term, [this] { return term_is_over(); }}, std::exchange(image_, nullptr),
      settings_.journal, timing_, statistics_, journal_by_hand);
  led_term_ = term;
  const Result<void> begun = owner_.begin_life(std::move(journal));
  if (!begun) {
    log_error("elected as leader but cannot serve", {{"error", begun.error().message}});
    led_term_ = 0;
    not_before_ = boot() + kAfterFailedTakeOver;
    stand_down(begun.error().message);
    return kTryAgain;
  }
  change_view([&](ReplicaView& view) {
    view.role = ReplicaRole::leader;
    view.leader = settings_.url;
    view.term = term;
    view.lag_batches = 0;
    ++view.terms_led;
  });
  return Duration(0);
}

// At the term's revision: what is written later is this server's, or nobody's.
Answer<void> Replica::read_all(Revision term) {
  // Nothing has been read yet: a term that is over at once must not serve what it does not know.
  Answer<void> read = std::unexpected(etcd::CallError{Failure::not_done, "the time of this term is over"});
  Revision at = term;
  while (!term_is_over()) {
    read = image_->refresh(at, EtcdImage::Look::all, 4 * call_timeout_);
    // "Now" may be told by a member that has not heard of the term yet.
    if (read && image_->as_of() < term)
      read = std::unexpected(etcd::CallError{Failure::not_done, "etcd has read what is no longer so"});
    if (read && image_->in_doubt()) {
      log_warning("the local copy differs from the store; reading all of it again");
      begin_anew();
      read = std::unexpected(etcd::CallError{Failure::not_done, "the time of this term is over"});
      continue;
    }
    if (read) break;
    not_before_ = boot() + kAfterFailedTakeOver;  // if nothing comes of it: another server may do better
    statistics_.count_error(read.error());
    if (read.error().failure == Failure::denied || read.error().failure == Failure::refused) break;
    // Somebody has compacted etcd behind it already: then as of now, which is the same.
    if (read.error().failure == Failure::compacted) at = 0;
    timing_.pause(milliseconds(20));
  }
  if (!read) return read;
  etcd::RangeRequest request;
  request.begin = keys_.format();
  const auto format = client_.range(request, call_timeout_);
  if (!format) return std::unexpected(format.error());
  if (const Result<void> known = check_format(*format); !known)
    return std::unexpected(etcd::CallError{Failure::refused, known.error().message});
  if (!format->values.empty()) return {};
  etcd::Transaction mark;
  mark.guards.push_back({keys_.leader(), term});
  mark.puts.push_back({keys_.format(), std::string(kEtcdFormat), LeaseId::none});
  const auto marked = client_.commit(mark, call_timeout_);
  if (!marked) return std::unexpected(marked.error());
  return {};
}

// Twice the same does no harm, so it is sent until the outcome is known.
Result<void> Replica::write_format(std::string_view format) {
  const Revision term = term_.load();
  etcd::Transaction transaction;
  transaction.guards.push_back({keys_.leader(), term});
  transaction.puts.push_back({keys_.format(), std::string(format), LeaseId::none});
  for (;;) {
    if (term == 0 || term_.load() != term || term_is_over()) return fail("etcd has not confirmed it in time");
    const Answer<etcd::TransactionAnswer> answer = client_.commit(transaction, call_timeout_);
    if (answer && answer->done) return {};
    if (answer) return fail("a server leads there by now");
    if (answer.error().failure != Failure::unknown && answer.error().failure != Failure::not_done)
      return fail(answer.error().message);
    timing_.pause(milliseconds(20));
  }
}

// The lease's time is read first: keep_lease() writes it last.
bool Replica::term_is_over() const {
  return boot().count() >= lease_until_.load() || doubtful_.load() || given_up_.load() ||
         lease_.load() == LeaseId::none;
}

Duration Replica::lead() {
  if (term_is_over()) {
    std::string why;
    {
      const Locked lock(mutex_);
      why = std::exchange(doubt_, {});
    }
    doubtful_ =
        true;  // whatever etcd says of the lease from now on: the other thread may yet be told that it lives
    owner_.end_life();
    stand_down(why.empty() ? "its lease was not renewed in time" : why);
    return Duration(0);
  }
  register_self(true, statistics_.next_number(), 0);
  read_servers();
  return kLeadEvery;
}

void Replica::stand_down(const std::string& why) {
  term_ = 0;  // before its key goes
  log_warning("this server is no longer the leader", {{"why", why}, {"term", std::exchange(led_term_, 0)}});
  change_view([](ReplicaView& view) {
    view.role = ReplicaRole::standby;
    view.leader.clear();
    view.in_step = false;
  });
  statistics_.set_no_space(false);  // as far as this server's own writes tell, which end here
  drop_lease();
  begin_anew();
}

// So that another server need not wait until its time is over.
void Replica::drop_lease() {
  const LeaseId lease = lease_.exchange(LeaseId::none);
  if (lease != LeaseId::none) (void)client_.revoke(lease, call_timeout_);
}

void Replica::hand_over() {
  watch_.reset();
  term_ = 0;
  led_term_ = 0;
  drop_lease();
}

void Replica::doubt(const std::string& why) {
  {
    const Locked lock(mutex_);
    if (doubt_.empty()) doubt_ = why;
  }
  doubtful_ = true;
  hurry();
}

void Replica::give_up() {
  given_up_ = true;
  hurry();
}

// From the moment the renewal was sent, because nobody knows when etcd began to count.
//
// Of a leader a renewal counts only with its key: etcd 3.4 can renew a lease that is gone, and a key can be
// deleted by hand. A leader that has nothing to write would not find out, and lead on beside the next one.
Duration Replica::keep_lease() {
  const LeaseId lease = lease_.load();
  const Revision term = term_.load();
  const Duration every = std::chrono::duration_cast<Duration>(settings_.lease) / 4;
  if (lease == LeaseId::none) return kTryAgain;
  const Duration sent = boot();
  const Answer<seconds> kept = client_.keep_alive(lease, call_timeout_);
  if (lease_.load() != lease) return Duration(0);
  // A term that was over once is over, whatever etcd says of the lease now.
  if (boot().count() >= lease_until_.load()) {
    doubtful_ = true;
    hurry();
  }
  if (kept && kept->count() > 0) {
    const std::optional<bool> leads = term == 0 ? true : has_leaders_key(term);
    if (leads && !*leads && term_.load() == term)
      doubt("the leader's key is gone, or another server's, although the lease is renewed");
    if (!leads) return std::min<Duration>(every, milliseconds(100));
    if (lease_.load() != lease) return Duration(0);
    if (boot().count() >= lease_until_.load()) doubtful_ = true;
    lease_until_ = (sent + *kept).count();
    return every;
  }
  if (!kept) statistics_.count_error(kept.error());
  if (kept || kept.error().failure == Failure::gone) {
    LeaseId expected = lease;
    lease_.compare_exchange_strong(expected, LeaseId::none);
    hurry();
    return every;
  }
  return std::min<Duration>(every, milliseconds(100));
}

// Nothing: etcd has not said, or only how it was before the term.
std::optional<bool> Replica::has_leaders_key(Revision term) {
  if (planted(Plant::renewal_is_proof)) return true;
  etcd::RangeRequest request;
  request.begin = keys_.leader();
  request.keys_only = true;
  const Answer<etcd::RangeAnswer> found = client_.range(request, call_timeout_);
  if (!found) statistics_.count_error(found.error());
  if (!found || found->revision < term) return std::nullopt;
  return !found->values.empty() && found->values.front().create_revision == term;
}

Duration Replica::problem(const etcd::CallError& error) {
  statistics_.count_error(error);
  if (!std::exchange(told_problem_, true))
    log_error("etcd cannot be used; retrying", {{"error", error.message}});
  change_view([&](ReplicaView& view) { view.problem = error.message; });
  return kTryAgain;
}

void Replica::no_problem() {
  if (!std::exchange(told_problem_, false)) return;
  log_info("etcd answers again");
  change_view([](ReplicaView& view) { view.problem.clear(); });
}

// For people who ask who is there; nothing depends on it.
void Replica::register_self(bool leads, uint64_t number, uint64_t lag) {
  ServerEntry entry{settings_.name, settings_.url, leads, number, {}, lag};
  {
    const Locked lock(mutex_);
    for (const ReplicaView::Server& each : view_.servers)
      if (each.name == settings_.name) entry.since = each.since;
  }
  if (entry.since == Time{}) entry.since = timing_.time.wall();
  // How far it has come changes with every batch, and each time that it is told is a revision that etcd keeps
  // until the next snapshot. It is told at every full ten seconds of the clock, when the others tell theirs.
  const int64_t now_in = timing_.time.wall().time_since_epoch() / kTellNumberEvery;
  if (registered_ && now_in == registered_in_) {
    entry.number = registered_->number;
    entry.lag = registered_->lag;
  }
  // While etcd is full this finds out when it is no longer: nothing else may be written meanwhile.
  const bool probes = leads && statistics_.no_space();
  if (!probes && registered_ && (entry == *registered_ || boot() < registered_at_ + kRegisterEvery)) return;
  registered_at_ = boot();
  const LeaseId lease = lease_.load();
  if (lease == LeaseId::none) return;
  etcd::Transaction transaction;
  transaction.puts.push_back({keys_.server(settings_.name), encode(entry), lease});
  if (!client_.commit(transaction, call_timeout_)) return;
  registered_ = std::move(entry);
  registered_in_ = now_in;
  if (probes) {
    statistics_.set_no_space(false);
    log_info("etcd takes writes again");
  }
}

void Replica::read_servers() {
  if (boot() < looked_at_ + kRegisterEvery) return;
  looked_at_ = boot();
  etcd::RangeRequest request;
  request.begin = keys_.servers();
  request.end = etcd::prefix_end(keys_.servers());
  const auto found = client_.range(request, call_timeout_);
  if (!found) return;
  std::vector<ReplicaView::Server> servers;
  uint64_t leaders = 0;  // of its last words, which may be older than those of the others, or newer
  std::map<std::string, std::pair<Revision, Duration>> entries;
  std::vector<uint64_t> silent_at;  // the number of who has said nothing for long; else the largest
  for (const etcd::KeyValue& each : found->values) {
    const std::optional<ServerEntry> entry = decode_server_entry(each.value);
    if (!entry) continue;
    const auto before = entries_.find(each.key);
    const bool same = before != entries_.end() && before->second.first == each.mod_revision;
    const auto& [revision, since] =
        entries.emplace(each.key, same ? before->second : std::pair(each.mod_revision, boot())).first->second;
    servers.push_back({entry->name, entry->url, entry->leads, entry->leads ? 0 : entry->lag, entry->since});
    silent_at.push_back(boot() >= since + kSilent ? entry->number : std::numeric_limits<uint64_t>::max());
    if (entry->leads) leaders = std::max(leaders, entry->number);
  }
  entries_ = std::move(entries);
  // What each has found behind itself, by its own word: numbers that two servers tell are of two moments, and
  // a busy leader writes thousands of batches in between. Only of who does not say anything any more it is
  // all that is known.
  for (size_t i = 0; i < servers.size(); ++i)
    if (!servers[i].leads && leaders > silent_at[i]) servers[i].lag_batches = leaders - silent_at[i];
  change_view([&](ReplicaView& view) { view.servers = std::move(servers); });
}

// A leader whose time is over says so at once, and not only when its turn comes (S47).
ReplicaView Replica::view() const {
  const bool over = term_is_over();
  const Locked lock(mutex_);
  ReplicaView view = view_;
  if (over && view.role == ReplicaRole::leader) {
    view.role = ReplicaRole::standby;
    view.leader.clear();
    view.in_step = false;
  }
  return view;
}

template <class Change>
void Replica::change_view(Change change) {
  bool tell = false;
  ReplicaView now;
  {
    const Locked lock(mutex_);
    const ReplicaRole role = view_.role;
    const std::string leader = view_.leader;
    const bool in_step = view_.in_step;
    const Revision term = view_.term;
    change(view_);
    tell = role != view_.role || leader != view_.leader || in_step != view_.in_step || term != view_.term;
    if (tell) now = view_;
  }
  if (tell) owner_.tell(now);
}

}  // namespace turnstile
