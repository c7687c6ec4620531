// The life of a blob on this node, from the first question to the last trace.
//
//   absent → asked → writing or adopting → in use → (kept) → leaving → absent
//
// What each stage means, what is on the disk in it and what must be *confirmed* to leave it is one table, in
// docs/decisions/0020. Its heart: a blob is in use only while it cannot be taken away, because the lock
// server has confirmed that it counts this node, or because this node has a second name for the file, or
// both.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/sync.h"
#include "content/arbiter.h"
#include "content/blob_store.h"
#include "content/key_locks.h"
#include "content/metrics.h"
#include "content/node_state.h"

namespace turnstile::content {

// All blobs' lives: who asks, who counts, what is left to tell and to remove.
//
// Threads: any, and one of its own (start()) for what may take long: telling the server, removing. Without
// that thread whoever ends a use does the rest at once, and work() does what is left.
// Invariants: nobody settles a blob that somebody here asks for, and the other way round; so a use that just
// begins cannot lose the count that the server has given it.
class Lives {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::chrono::milliseconds own_patience{300};  // with another stream of this node: containerd waits
    std::chrono::milliseconds later{
        3'000};  // before something is tried again; doubles up to twenty times that
    // After the server has answered, a call of before that nobody waited for any more is not carried out
    // later than this.
    std::chrono::milliseconds late{2'000};
    // Who ends a use waits so long until it is cleared away, unless that takes long: people look at once.
    std::chrono::milliseconds courtesy{250};
    std::chrono::milliseconds keep_unused{0};  // 0: what nobody here uses leaves at once
    int64_t keep_unused_bytes = 0;             // at most; 0: no limit
    std::string machine{};                     // in whose name the second names are owned; empty: nobody's
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
  };
  Lives(const BlobStore& blobs, NodeState& state, Arbiter& arbiter, Metrics& metrics, Options options);
  ~Lives();

  // After a crash: what was begun is undone or finished. Once, before anything else.
  Outcome<void> recover();
  void start();  // the thread

  // One stream's way to a use. Destroyed before use(), it is given up, and its traces are removed.
  class Ask {
   public:
    Ask() = default;
    Ask(Ask&& from) noexcept { *this = std::move(from); }
    Ask& operator=(Ask&& from) noexcept;
    ~Ask() { end("abandoned"); }

    explicit operator bool() const { return lives_ != nullptr; }
    bool is_for(const Digest& digest) const { return lives_ != nullptr && digest_ == digest; }
    void progress(int64_t done, int64_t total) const;
    bool still_valid() const { return ticket_ && ticket_->still_valid(); }
    void failed(const std::string& why) { end(why); }
    // The blob turned out to be in use here already: nobody has failed.
    void was_needless();

   private:
    friend class Lives;
    void end(const std::string& why);

    Lives* lives_ = nullptr;  // none: of nothing, or ended
    std::optional<Digest> digest_;
    std::unique_ptr<Ticket> ticket_;
    std::optional<KeyLocks::Held> turn_;
    bool noted_ = false;      // the line was made for this
    bool may_count_ = false;  // the server may count this node because of this
  };
  struct Answer {
    Decision::Kind kind = Decision::Kind::error;
    Ask ask{};          // with write and adopt
    std::string why{};  // with wait and error
    bool is_alone = false;
  };
  // absent (or leaving) → asked → writing or adopting. `is_there`: some root has the blob.
  Answer ask(const Digest& digest, bool is_there, int64_t size);
  // writing or adopting → in use: the file is there, containerd will be told. `guarded`: it has a second
  // name. Error unavailable: it is not safe from others, so it is not used.
  Outcome<void> use(Ask& ask, const BlobInfo& info, bool guarded);
  // kept → in use. False: it is not kept.
  Outcome<bool> use_again(const BlobInfo& info);
  // in use → kept or leaving. False: it was not in use.
  Outcome<bool> leave(const Digest& digest);

  // One round of what the thread does. True: something is left to do, now or later.
  bool work();
  // What is in use here, has lost its second name and is published gets one again.
  Outcome<void> guard_again(const Digest& digest) TS_EXCLUDES(mutex_);
  // Uses that nobody but this node is known to know of.
  size_t unconfirmed() const TS_EXCLUDES(mutex_);

 private:
  class Unsaid;
  struct Life {
    int asks = 0;
    bool settling = false;
    bool telling = false;
    bool counted = false;     // the server has confirmed it, and has not forgotten it since
    bool reported = false;    // that it is lost
    Clock::time_point due{};  // before it is settled, or told
    unsigned tries = 0;       // in vain, so far
    // Until then a word to the server that this node does not use it may still be on its way; max(): until
    // the server has answered.
    Clock::time_point doubt_until{};
    bool has_users = false;  // some node was found to have a second name for it
  };

  static std::unexpected<ContentError> not_safe(const Digest& digest);
  void give_up(const Digest& digest, bool noted, bool may_count) TS_EXCLUDES(mutex_);
  void take_possession();
  void tell() TS_EXCLUDES(mutex_);
  // A use that is confirmed: its file is put right.
  void look_after_file(const Digest& digest) TS_EXCLUDES(mutex_);
  void guard_again() TS_EXCLUDES(mutex_);
  void let_go_of_kept() TS_EXCLUDES(mutex_);
  bool settle_all() TS_EXCLUDES(mutex_);
  // leaving → absent, if nobody asks for it. False: later.
  bool settle(const Digest& digest) TS_EXCLUDES(mutex_);
  enum class Cleared : uint8_t {
    done,       // no trace of this node's is left, neither at the server nor on the disk
    not_asked,  // the server; later
    answered,   // it has; but something is left
    unknown,    // it was asked
  };
  Cleared clear_away(const Digest& digest, bool had_users) TS_EXCLUDES(mutex_);
  void note_answer(Life& life, Cleared cleared) TS_REQUIRES(mutex_);
  bool remove_files(const Digest& digest, const Removal& removal, bool had_users) TS_EXCLUDES(mutex_);
  // Takes the second names of nodes that people have released. False: some node may use it.
  bool take_second_names(const Digest& digest, const BlobStore::Aside& aside, const Removal& removal);
  void say_who_confirms(const std::string& life) TS_EXCLUDES(mutex_);
  void run(const std::stop_token& stop) TS_EXCLUDES(wake_mutex_);
  void wait_a_moment_for(const Digest& digest) TS_EXCLUDES(wake_mutex_);
  void put_off(Life& life) TS_REQUIRES(mutex_);
  // Of an answer that was asked for while the server was in the life `asked`.
  bool still_counts(bool confirmed, const std::string& asked) const {
    return confirmed && arbiter_.life() == asked;
  }

  const BlobStore& blobs_;
  NodeState& state_;
  Arbiter& arbiter_;
  Metrics& metrics_;
  const Options options_;
  KeyLocks turns_;  // one question for each blob among this node's own streams

  mutable Mutex mutex_;
  std::map<Digest, Life> lives_ TS_GUARDED_BY(mutex_);

  Mutex said_mutex_;
  int unsaid_ TS_GUARDED_BY(said_mutex_) = 0;                   // uses that are on their way
  std::optional<std::string> said_ TS_GUARDED_BY(said_mutex_);  // by which life all uses are confirmed
  Clock::time_point say_due_ TS_GUARDED_BY(said_mutex_){};

  Clock::time_point possession_due_{}, guard_due_{};  // work()'s

  Mutex wake_mutex_;
  std::condition_variable_any wake_, settled_;
  bool woken_ TS_GUARDED_BY(wake_mutex_) = false;
  std::atomic<bool> is_quick_{true};  // to clear something away, the last time
  std::jthread thread_;               // last: it uses the others
};

}  // namespace turnstile::content
