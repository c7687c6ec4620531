// How a use begins and ends, as far as somebody waits for it. What is done behind is in settling.cc.
#include "content/lives.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/plant.h"
#include "content/pause.h"

namespace turnstile::content {

Lives::Lives(const BlobStore& blobs, NodeState& state, Arbiter& arbiter, Metrics& metrics, Options options)
    : blobs_(blobs), state_(state), arbiter_(arbiter), metrics_(metrics), options_(std::move(options)) {}

Lives::~Lives() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

Outcome<void> Lives::recover() {
  // Until all is told again.
  if (const Outcome<void> said = blobs_.set_confirmed_by({}); !said) return said;
  for (const Stage stage : {Stage::in_use, Stage::kept}) {
    for (const BlobInfo& info : state_.in_stage(stage)) {
      const Outcome<OpenBlob> blob = blobs_.find(info.digest);
      if (!blob && blob.error().code == ErrorClass::not_found && !blobs_.has_read_roots()) {
        log_error("a blob of this node is in no root any more; forgotten", {{"digest", info.digest.text()}});
        metrics_.add(Count::lost_blobs);
        if (const Outcome<bool> moved = state_.move(info.digest, stage, Stage::leaving); !moved)
          return std::unexpected(moved.error());
        continue;
      }
      if (!blob) log_warning("a blob of this node is not in sight", {{"digest", info.digest.text()}});
      const Locked lock(mutex_);
      lives_[info.digest];
    }
  }
  // What was counted or has a second name, and is not in use: a life that ended between the two.
  Outcome<std::vector<Digest>> traces = blobs_.guarded();
  if (!traces) return std::unexpected(traces.error());
  const std::vector<Digest> counted = arbiter_.counted();
  traces->insert(traces->end(), counted.begin(), counted.end());
  for (const Digest& digest : *traces) {
    const Outcome<bool> noted = state_.note(digest);
    if (noted) continue;
    if (noted.error().code != ErrorClass::resource_exhausted) return std::unexpected(noted.error());
    // A node with a full disk must start, so that images can be read and removed.
    log_warning("what an earlier run left of a blob stays until the next start",
                {{"digest", digest.text()}, {"error", noted.error().message}});
  }
  for (const BlobInfo& info : state_.in_stage(Stage::leaving)) {
    if (planted(Plant::leaves_aside)) continue;
    if (const Outcome<void> back = blobs_.bring_back(info.digest, arbiter_.is_remote()); !back)
      log_warning("a removal is postponed",
                  {{"digest", info.digest.text()}, {"error", back.error().message}});
    if (arbiter_.is_remote() && state_.may_be_told(info.digest)) {
      // The life before may have told the server just when it ended.
      const Locked lock(mutex_);
      lives_[info.digest].doubt_until = Clock::time_point::max();
    }
    if (!arbiter_.is_remote()) (void)settle(info.digest);
  }
  return {};
}

// ---- To ask.

Lives::Ask& Lives::Ask::operator=(Ask&& from) noexcept {
  if (this == &from) return *this;
  end("abandoned");
  lives_ = std::exchange(from.lives_, nullptr);
  digest_ = std::move(from.digest_);
  ticket_ = std::move(from.ticket_);
  turn_.reset();
  if (from.turn_) turn_.emplace(std::move(*from.turn_));
  from.turn_.reset();
  noted_ = from.noted_;
  may_count_ = from.may_count_;
  return *this;
}

void Lives::Ask::progress(int64_t done, int64_t total) const {
  if (ticket_) ticket_->progress(done, total);
}

void Lives::Ask::was_needless() {
  may_count_ = true;
  if (ticket_) (void)ticket_->succeeded();
  end("");
}

void Lives::Ask::end(const std::string& why) {
  if (lives_ == nullptr) return;
  if (ticket_) ticket_->failed(why);
  ticket_.reset();
  std::exchange(lives_, nullptr)->give_up(*digest_, noted_, may_count_);
  turn_.reset();
}

Lives::Answer Lives::ask(const Digest& digest, bool is_there, int64_t size) {
  Ask ask;
  // The server knows one requester, this node; so its streams take turns. One that has just been closed is
  // given a moment to free the blob.
  if (arbiter_.is_remote()) {
    Outcome<KeyLocks::Held> turn = turns_.take(digest.text(), options_.own_patience);
    if (!turn) return {Decision::Kind::wait, {}, "this node is working on it already"};
    ask.turn_.emplace(std::move(*turn));
  }
  {
    const Locked lock(mutex_);
    Life& life = lives_[digest];
    if (life.settling || life.doubt_until > options_.now()) {
      // Somebody waits for it: the server is asked soon, however often that was in vain.
      if (life.doubt_until == Clock::time_point::max()) {
        life.tries = 0;
        life.due = std::min(life.due, options_.now() + options_.later);
      }
      return {Decision::Kind::wait, {}, "this node is still giving it up"};
    }
    ++life.asks;
  }
  ask.lives_ = this;
  ask.digest_ = digest;
  // Noted before anybody is asked: who counts this node from now on can be told, whatever happens here.
  const Outcome<bool> noted = state_.note(digest);
  if (!noted) return {Decision::Kind::error, {}, noted.error().message};
  ask.noted_ = *noted;
  ask.may_count_ = true;
  Decision decision = is_there ? arbiter_.begin_adoption(digest) : arbiter_.begin_write(digest, size);
  ask.may_count_ = decision.may_count;
  ask.ticket_ = std::move(decision.ticket);
  if (decision.kind != Decision::Kind::write && decision.kind != Decision::Kind::adopt)
    return {decision.kind, {}, std::move(decision.why)};
  TS_CHECK(ask.ticket_ != nullptr, "who may go on has a ticket");
  return {decision.kind, std::move(ask), {}, decision.is_alone};
}

void Lives::give_up(const Digest& digest, bool noted, bool may_count) {
  const Locked lock(mutex_);
  Life& life = lives_[digest];
  --life.asks;
  if (life.asks > 0 || life.settling || state_.stage_of(digest) != Stage::leaving) return;
  // Whoever has just given up often comes again at once.
  life.due = options_.now() + options_.later;
  if (!noted || may_count) return;
  // The server was not asked, or has said that it counts nobody: there is nothing to clear away.
  if (const Outcome<void> forgotten = state_.forget(digest); !forgotten) {
    log_warning("a database line could not be removed",
                {{"digest", digest.text()}, {"error", forgotten.error().message}});
    return;
  }
  lives_.erase(digest);
}

// ---- To use, and to stop.

// While it lives, this node does not say of its uses that all are counted: one of them is on its way.
class Lives::Unsaid {
 public:
  explicit Unsaid(Lives& lives) : lives_(lives) {
    const Locked lock(lives_.said_mutex_);
    ++lives_.unsaid_;
  }
  ~Unsaid() {
    const Locked lock(lives_.said_mutex_);
    --lives_.unsaid_;
  }
  Unsaid(const Unsaid&) = delete;
  Unsaid& operator=(const Unsaid&) = delete;
  // What it has said before, too.
  Outcome<void> take_back() const {
    const Locked lock(lives_.said_mutex_);
    lives_.said_ = std::string();
    return lives_.blobs_.set_confirmed_by({});
  }

 private:
  Lives& lives_;
};

Outcome<void> Lives::use(Ask& ask, const BlobInfo& info, bool guarded) {
  TS_CHECK(ask.is_for(info.digest), "a use is of what was asked for");
  ask.may_count_ = true;
  const Unsaid unsaid(*this);
  const std::string asked = arbiter_.life();
  const bool confirmed = ask.ticket_->succeeded();
  if (!confirmed && guarded) {
    // Who has taken this node at its word until now may have taken this second name, too: looked at once
    // more.
    if (Outcome<void> back = unsaid.take_back(); !back) return back;
    guarded = blobs_.is_guarded(info.digest);
  }
  if (!confirmed && !guarded && !planted(Plant::adoption_uncounted)) return not_safe(info.digest);
  pause("before a use is written down");
  if (Outcome<void> added = state_.add(info); !added) return added;
  // A damaged file may have been put away just now, with its second names: until it was written down nobody
  // here would have made this node's again.
  guarded = guarded && blobs_.is_guarded(info.digest);
  const bool believed = planted(Plant::confirmed_too_early) || planted(Plant::adoption_uncounted) ||
                        (confirmed && planted(Plant::assumed_release_counts));
  if (!guarded && !believed) {
    // Only now: a server that forgets is told again of what is written down. Until then it could have
    // forgotten this use, and the file have been removed.
    pause("before a use is confirmed");
    if (!arbiter_.confirm_uses({info.digest}).front() || !blobs_.find_published(info.digest)) {
      if (const Outcome<bool> left = state_.move(info.digest, Stage::in_use, Stage::leaving); !left)
        return std::unexpected(left.error());
      return not_safe(info.digest);
    }
  }
  const Locked lock(mutex_);
  Life& life = lives_[info.digest];
  life.counted = still_counts(confirmed, asked);
  life.reported = life.has_users = false;
  life.due = {};  // of an end that was put off
  life.tries = 0;
  return {};
}

std::unexpected<ContentError> Lives::not_safe(const Digest& digest) {
  return fail(ErrorClass::unavailable,
              fmt::format("content {}: the lock server could not be told that this node uses it, so another "
                          "node could remove it; pull it again when the server answers",
                          digest.text()));
}

Outcome<bool> Lives::use_again(const BlobInfo& info) {
  {
    const Locked lock(mutex_);
    Life& life = lives_[info.digest];
    if (life.settling || state_.stage_of(info.digest) != Stage::kept) return false;
    ++life.asks;  // so that nobody settles it, should its time be over just now
  }
  const Outcome<void> added = state_.add(info);
  const Locked lock(mutex_);
  --lives_[info.digest].asks;
  if (!added) return std::unexpected(added.error());
  return true;
}

Outcome<bool> Lives::leave(const Digest& digest) {
  const Stage to = options_.keep_unused.count() > 0 ? Stage::kept : Stage::leaving;
  Outcome<bool> moved = state_.move(digest, Stage::in_use, to);
  if (!moved || !*moved || to == Stage::kept) return moved;
  if (!arbiter_.is_remote() || !thread_.joinable()) {
    (void)settle(digest);
  } else {
    wait_a_moment_for(digest);
  }
  return moved;
}

void Lives::wait_a_moment_for(const Digest& digest) {
  const Locked lock(wake_mutex_);
  woken_ = true;
  wake_.notify_one();
  if (is_quick_)
    settled_.wait_for(wake_mutex_, options_.courtesy,
                      [&] { return !is_quick_ || state_.stage_of(digest) != Stage::leaving; });
}

size_t Lives::unconfirmed() const {
  const Locked lock(mutex_);
  size_t count = 0;
  for (const auto& [digest, life] : lives_) {
    const std::optional<Stage> stage = life.counted ? std::nullopt : state_.stage_of(digest);
    count += stage && *stage != Stage::leaving;
  }
  return count;
}

}  // namespace turnstile::content
