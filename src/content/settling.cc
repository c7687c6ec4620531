// What Lives does behind: telling the server what this node uses, and clearing away what it does not use any
// more.
#include <algorithm>

#include "base/log.h"
#include "base/plant.h"
#include "content/lives.h"
#include "content/pause.h"

namespace turnstile::content {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 250ms;
constexpr size_t kBatch = 500;
constexpr auto kOnFullDisk = 1min;
constexpr auto kGuardAgain = 10s;
constexpr auto kQuick = 25ms;  // containerd's content lock is held meanwhile

}  // namespace

void Lives::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Lives::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    (void)work();
    const Locked lock(wake_mutex_);
    wake_.wait_for(wake_mutex_, stop, kTick, [this]() TS_NO_ANALYSIS { return woken_; });
    woken_ = false;
  }
}

bool Lives::work() {
  arbiter_.look_after();
  take_possession();
  const std::string now_asked = arbiter_.life();
  if (arbiter_.has_forgotten()) {
    const Locked lock(mutex_);
    for (auto& [digest, life] : lives_) life.counted = false;
  }
  tell();
  say_who_confirms(now_asked);
  guard_again();
  let_go_of_kept();
  const bool all_settled = settle_all();
  return !all_settled || unconfirmed() > 0;
}

// main() has done so, unless the disk was full.
void Lives::take_possession() {
  if (options_.machine.empty() || possession_due_ > options_.now()) return;
  const Outcome<void> ours = blobs_.take_possession(state_.id(), options_.machine);
  possession_due_ = ours ? Clock::time_point::max() : options_.now() + kOnFullDisk;
  if (!ours) log_warning("others cannot see whose second names these are", {{"error", ours.error().message}});
}

// ---- What is in use is told, until it is confirmed.

void Lives::tell() {
  for (;;) {
    std::vector<Digest> batch;
    {
      const Locked lock(mutex_);
      const Clock::time_point now = options_.now();
      for (auto& [digest, life] : lives_) {
        if (life.counted || life.telling || life.settling || life.due > now) continue;
        const std::optional<Stage> stage = state_.stage_of(digest);
        if (!stage || *stage == Stage::leaving) continue;
        life.telling = true;
        batch.push_back(digest);
        if (batch.size() == kBatch) break;
      }
    }
    if (batch.empty()) return;
    const std::string asked = arbiter_.life();
    const std::vector<bool> confirmed = arbiter_.confirm_uses(batch);
    {
      const Locked lock(mutex_);
      for (size_t i = 0; i < batch.size(); ++i) {
        Life& life = lives_[batch[i]];
        life.telling = false;
        life.counted = still_counts(confirmed[i], asked);
        if (confirmed[i]) life.tries = 0;
        // Without a doubling: until it is confirmed, it may not be safe.
        if (!confirmed[i]) life.due = options_.now() + options_.later / 4;
      }
    }
    for (size_t i = 0; i < batch.size(); ++i)
      if (confirmed[i]) look_after_file(batch[i]);
    if (std::find(confirmed.begin(), confirmed.end(), true) == confirmed.end()) return;
  }
}

// What other nodes may rely on when they find this node's second name for a blob that the server says nobody
// uses.
void Lives::say_who_confirms(const std::string& life) {
  const Locked lock(said_mutex_);
  if (say_due_ > options_.now() || said_ == life || life.empty() || unsaid_ > 0 || unconfirmed() > 0 ||
      arbiter_.life() != life)
    return;
  const Outcome<void> said = blobs_.set_confirmed_by(life);
  if (said) {
    said_ = life;
    return;
  }
  say_due_ = options_.now() + kOnFullDisk;
  log_warning("a note for other nodes cannot be written", {{"error", said.error().message}});
}

void Lives::look_after_file(const Digest& digest) {
  pause("before a blob's names are put right");
  const bool published = blobs_.find_published(digest).has_value();
  const bool guarded = blobs_.is_guarded(digest);
  Outcome<void> done;
  if (published && !guarded) {
    if (const Outcome<bool> linked = blobs_.guard(digest); !linked) done = std::unexpected(linked.error());
  } else if (!published && guarded) {
    log_info("published again from this node's own name", {{"digest", digest.text()}});
    done = blobs_.publish_again(digest);
  } else if (!published && !blobs_.has_read_roots()) {
    const Locked lock(mutex_);
    Life& life = lives_[digest];
    if (!life.reported) {
      log_error("a blob that this node uses is in no root any more", {{"digest", digest.text()}});
      metrics_.add(Count::lost_blobs);
    }
    life.reported = true;
  }
  if (!done) log_warning("a blob's names", {{"digest", digest.text()}, {"error", done.error().message}});
}

// Who puts a damaged file away takes all second names of it, and who pulls it again makes one for itself.
void Lives::guard_again() {
  if (guard_due_ > options_.now() || !blobs_.guards_all() || planted(Plant::guarded_once)) return;
  guard_due_ = options_.now() + kGuardAgain;
  Outcome<std::vector<Digest>> guarded = blobs_.guarded();
  if (!guarded) return log_warning("this node's second names", {{"error", guarded.error().message}});
  std::sort(guarded->begin(), guarded->end());
  for (const Stage stage : {Stage::in_use, Stage::kept})
    for (const BlobInfo& info : state_.in_stage(stage)) {
      if (std::binary_search(guarded->begin(), guarded->end(), info.digest)) continue;
      if (const Outcome<void> done = guard_again(info.digest); !done)
        return log_warning("a blob's second name",
                           {{"digest", info.digest.text()}, {"error", done.error().message}});
    }
}

Outcome<void> Lives::guard_again(const Digest& digest) {
  {
    const Locked lock(mutex_);
    Life& life = lives_[digest];
    const std::optional<Stage> stage = state_.stage_of(digest);
    if (life.telling || life.settling || !stage || *stage == Stage::leaving) return {};
    life.telling = true;  // nobody settles it meanwhile
  }
  pause("before a second name is made again");
  const Outcome<bool> guarded = blobs_.guard(digest);
  {
    const Locked lock(mutex_);
    lives_[digest].telling = false;
  }
  if (guarded || guarded.error().code == ErrorClass::not_found) return {};  // nobody has pulled it again yet
  return std::unexpected(guarded.error());
}

// ---- What is kept leaves when its time is over, or when there is too much of it: the oldest first.

void Lives::let_go_of_kept() {
  std::vector<BlobInfo> kept = state_.in_stage(Stage::kept);
  if (kept.empty()) return;
  std::sort(kept.begin(), kept.end(),
            [](const BlobInfo& a, const BlobInfo& b) { return a.updated.ns < b.updated.ns; });
  int64_t bytes = 0;
  for (const BlobInfo& info : kept) bytes += info.size;
  const int64_t now = Timestamp::now().ns;
  const int64_t longest = std::chrono::nanoseconds(options_.keep_unused).count();
  for (const BlobInfo& info : kept) {
    const bool too_old = now - info.updated.ns >= longest;
    const bool too_much = options_.keep_unused_bytes > 0 && bytes > options_.keep_unused_bytes;
    if (!too_old && !too_much) return;
    if (const Outcome<bool> moved = state_.move(info.digest, Stage::kept, Stage::leaving); !moved)
      return log_warning("a kept blob cannot leave", {{"error", moved.error().message}});
    bytes -= info.size;
  }
}

// ---- What is left is cleared away.

bool Lives::settle_all() {
  bool all = true;
  for (const BlobInfo& info : state_.in_stage(Stage::leaving)) {
    {
      const Locked lock(mutex_);
      if (lives_[info.digest].due > options_.now()) {
        all = false;
        continue;
      }
    }
    all &= settle(info.digest);
    if (thread_.get_stop_token().stop_requested()) return false;
  }
  return all;
}

bool Lives::settle(const Digest& digest) {
  bool had_users = false;
  {
    const Locked lock(mutex_);
    Life& life = lives_[digest];
    if ((life.asks > 0 && !planted(Plant::settles_what_is_asked_for)) || life.settling || life.telling ||
        arbiter_.is_waiting(digest))
      return false;
    if (state_.stage_of(digest) != Stage::leaving) return true;
    life.settling = true;
    had_users = life.has_users;
  }
  const auto begun = std::chrono::steady_clock::now();
  const Cleared cleared = clear_away(digest, had_users);
  bool done = cleared == Cleared::done, in_doubt = false;
  {
    const Locked lock(mutex_);
    Life& life = lives_[digest];
    note_answer(life, cleared);
    in_doubt = life.doubt_until > options_.now();
  }
  done = done && !in_doubt;
  if (done)
    if (const Outcome<void> forgotten = state_.forget(digest); !forgotten) {
      log_warning("a database line could not be removed",
                  {{"digest", digest.text()}, {"error", forgotten.error().message}});
      done = false;
    }
  if (!in_doubt)
    if (const Outcome<void> noted = state_.set_may_be_told(digest, false); !noted)
      log_warning("a restart will wait for the lock server before it uses a blob again",
                  {{"digest", digest.text()}, {"error", noted.error().message}});
  {
    const Locked lock(mutex_);
    if (done) {
      lives_.erase(digest);
    } else {
      Life& life = lives_[digest];
      life.settling = false;
      life.counted = false;
      put_off(life);
    }
  }
  const Locked lock(wake_mutex_);
  is_quick_ = done && std::chrono::steady_clock::now() - begun < kQuick;
  settled_.notify_all();
  return done;
}

void Lives::put_off(Life& life) {
  life.due = options_.now() + options_.later * std::min(1 << std::min(life.tries, 5U), 20);
  ++life.tries;
}

// A word that got lost may be found again, and would end a use that has begun since. Once the server has
// answered a later one, that does not take long any more.
void Lives::note_answer(Life& life, Cleared cleared) {
  if (planted(Plant::doubt_ignored)) return;
  if (cleared == Cleared::unknown) life.doubt_until = Clock::time_point::max();
  const bool answered = cleared == Cleared::done || cleared == Cleared::answered;
  if (answered && life.doubt_until == Clock::time_point::max())
    life.doubt_until = options_.now() + options_.late;
}

Lives::Cleared Lives::clear_away(const Digest& digest, bool had_users) {
  if (!arbiter_.has_its_name()) return Cleared::not_asked;
  pause("before a second name is removed");
  if (const Outcome<void> removed = blobs_.unguard(digest); !removed) {
    log_warning("this node's own name of a blob could not be removed",
                {{"digest", digest.text()}, {"error", removed.error().message}});
    return Cleared::not_asked;
  }
  // A removal sees second names, but a use may be without: where there are none, or since a damaged file was
  // put away. So all must have had the time to be counted, and it must be known which life of the server has
  // not counted them.
  const bool trusts =
      planted(Plant::removes_in_young_life) || (planted(Plant::second_names_trusted) && blobs_.guards_all());
  if (!arbiter_.is_settled() && !trusts) return Cleared::not_asked;
  // Should this process end before the answer comes, the next one must not begin a use that it could still
  // end.
  if (const Outcome<void> noted = state_.set_may_be_told(digest, arbiter_.is_remote()); !noted) {
    log_warning("a use cannot be ended now", {{"digest", digest.text()}, {"error", noted.error().message}});
    return Cleared::not_asked;
  }
  const Removal removal = arbiter_.end_use(digest, blobs_.find_published(digest).has_value());
  if (removal.ticket && !trusts && (!arbiter_.is_settled() || !removal.is_certain)) {
    removal.ticket->failed("not all have told yet what they use");
    return Cleared::answered;
  }
  switch (removal.kind) {
    case Removal::Kind::settled:
      return Cleared::done;
    case Removal::Kind::later:
      return Cleared::answered;
    case Removal::Kind::not_asked:
      return Cleared::not_asked;
    case Removal::Kind::unknown:
      return Cleared::unknown;
    case Removal::Kind::remove_own:
    case Removal::Kind::remove_everywhere:
      break;
  }
  return remove_files(digest, removal, had_users) ? Cleared::done : Cleared::answered;
}

bool Lives::take_second_names(const Digest& digest, const BlobStore::Aside& aside, const Removal& removal) {
  // The life that has given the right must still be the one that decides.
  if (!removal.is_certain || removal.life.empty() || aside.users.empty() || !removal.ticket->still_valid() ||
      arbiter_.ask_life() != removal.life)
    return false;
  // A node that was told between the question and now that it uses the blob has made its second name before
  // the blob was put aside, or will make none.
  if (!arbiter_.counts_nobody(digest)) return false;
  for (const std::string& node : aside.users) {
    const Outcome<bool> taken = blobs_.take_second_name(node, digest, removal.life);
    if (!taken || !*taken) return false;
    log_info("a second name of a node that was released is removed",
             {{"digest", digest.text()}, {"node", node}});
  }
  const Outcome<BlobStore::Aside> left = blobs_.put_aside(digest, true);
  return left && !left->in_use;
}

// True: they are gone.
bool Lives::remove_files(const Digest& digest, const Removal& removal, bool had_users) {
  const bool everywhere = removal.kind == Removal::Kind::remove_everywhere;
  const auto spare = [&](const std::string& why) {
    pause("before a blob is brought back");
    if (const Outcome<void> back = blobs_.bring_back(digest, everywhere); !back)
      log_error("a blob could not be brought back",
                {{"digest", digest.text()}, {"error", back.error().message}});
    removal.ticket->failed(why);
  };
  pause("before a blob is put aside");
  const Outcome<BlobStore::Aside> aside = blobs_.put_aside(digest, everywhere);
  pause("behind it");
  if (!aside) {
    log_warning("a blob could not be removed", {{"digest", digest.text()}, {"error", aside.error().message}});
    spare(aside.error().message);
    return false;
  }
  if (aside->in_use && !(had_users && take_second_names(digest, *aside, removal))) {
    if (!had_users)
      log_info(
          "a blob has a second name: a node uses it that the lock server does not count, or a program such "
          "as "
          "a backup has linked it; it stays",
          {{"digest", digest.text()}});
    spare("it has a second name");
    const Locked lock(mutex_);
    lives_[digest].has_users = true;
    return false;  // until that node is counted, gives it up, or is known to have been released
  }
  // Asked after the name was changed: if the right held until now, nobody has begun to use what lies aside;
  // and from now on nobody can, however long the rest takes.
  if (!removal.ticket->still_valid()) {
    spare("the right to remove it has run out");
    return false;
  }
  pause("before a blob is removed");
  if (const Outcome<void> removed = blobs_.remove_aside(digest, everywhere); !removed) {
    log_warning("a blob could not be removed",
                {{"digest", digest.text()}, {"error", removed.error().message}});
    spare(removed.error().message);
    return false;
  }
  metrics_.add(Count::removed_blobs);
  (void)removal.ticket->succeeded();
  return true;
}

}  // namespace turnstile::content
