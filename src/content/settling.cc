// What Lives does behind: telling the server what this node uses, and clearing away what it does not use any
// more.
#include <algorithm>

#include "base/log.h"
#include "base/plant.h"
#include "content/lives.h"

namespace turnstile::content {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 250ms;
constexpr size_t kBatch = 500;

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
  if (arbiter_.has_forgotten()) {
    const Locked lock(mutex_);
    for (auto& [digest, life] : lives_) life.counted = false;
  }
  tell();
  let_go_of_kept();
  const bool all_settled = settle_all();
  return !all_settled || unconfirmed() > 0;
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
    const std::vector<bool> confirmed = arbiter_.confirm_uses(batch);
    {
      const Locked lock(mutex_);
      for (size_t i = 0; i < batch.size(); ++i) {
        Life& life = lives_[batch[i]];
        life.telling = false;
        life.counted = confirmed[i];
        if (!confirmed[i]) life.due = options_.now() + options_.later;
      }
    }
    for (size_t i = 0; i < batch.size(); ++i)
      if (confirmed[i]) look_after_file(batch[i]);
    if (std::find(confirmed.begin(), confirmed.end(), true) == confirmed.end()) return;
  }
}

void Lives::look_after_file(const Digest& digest) {
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
  {
    const Locked lock(mutex_);
    Life& life = lives_[digest];
    if (life.asks > 0 || life.settling || life.telling || arbiter_.is_waiting(digest)) return false;
    if (state_.stage_of(digest) != Stage::leaving) return true;
    life.settling = true;
  }
  bool done = clear_away(digest);
  if (done)
    if (const Outcome<void> forgotten = state_.forget(digest); !forgotten) {
      log_warning("a line stays behind", {{"digest", digest.text()}, {"error", forgotten.error().message}});
      done = false;
    }
  const Locked lock(mutex_);
  if (done) {
    lives_.erase(digest);
  } else {
    Life& life = lives_[digest];
    life.settling = false;
    life.counted = false;
    life.due = options_.now() + options_.later;
  }
  return done;
}

// True: no trace of this node's is left, neither at the server nor on the disk.
bool Lives::clear_away(const Digest& digest) {
  if (const Outcome<void> removed = blobs_.unguard(digest); !removed) {
    log_warning("this node's own name of a blob stays behind",
                {{"digest", digest.text()}, {"error", removed.error().message}});
    return false;
  }
  // Where every use has a second name, a removal sees it; else all must have had the time to be counted.
  if (!blobs_.guards_all() && !arbiter_.is_settled()) return false;
  const Removal removal = arbiter_.end_use(digest, blobs_.find_published(digest).has_value());
  switch (removal.kind) {
    case Removal::Kind::settled:
      return true;
    case Removal::Kind::later:
      return false;
    case Removal::Kind::remove_own:
    case Removal::Kind::remove_everywhere:
      return remove_files(digest, removal);
  }
  return false;
}

// True: they are gone, or belong to others who will see to them.
bool Lives::remove_files(const Digest& digest, const Removal& removal) {
  const bool everywhere = removal.kind == Removal::Kind::remove_everywhere;
  const auto spare = [&](const std::string& why) {
    if (const Outcome<void> back = blobs_.bring_back(digest, everywhere); !back)
      log_error("a blob could not be brought back",
                {{"digest", digest.text()}, {"error", back.error().message}});
    removal.ticket->failed(why);
  };
  const Outcome<BlobStore::Aside> aside = blobs_.put_aside(digest, everywhere);
  if (!aside) {
    log_warning("a blob stays behind", {{"digest", digest.text()}, {"error", aside.error().message}});
    spare(aside.error().message);
    return false;
  }
  if (aside->in_use) {
    log_info("a blob is in use by a node that the lock server does not count; it stays",
             {{"digest", digest.text()}});
    spare("a node has a name of its own for it");
    return true;
  }
  // Asked after the name was changed: if the right held until now, nobody has begun to use what lies aside;
  // and from now on nobody can, however long the rest takes.
  if (!removal.ticket->still_valid()) {
    spare("the right to remove it has run out");
    return false;
  }
  if (const Outcome<void> removed = blobs_.remove_aside(digest, everywhere); !removed) {
    log_warning("a blob stays behind", {{"digest", digest.text()}, {"error", removed.error().message}});
    spare(removed.error().message);
    return false;
  }
  metrics_.add(Count::removed_blobs);
  (void)removal.ticket->succeeded();
  return true;
}

}  // namespace turnstile::content
