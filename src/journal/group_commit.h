// Group commit: many steps become one batch, one write and one sync. Shared by every journal that keeps
// records.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/sync.h"
#include "base/time.h"
#include "engine/effects.h"
#include "journal/batch.h"

namespace turnstile {

// Where batches go. Called by the commit thread only.
class BatchStore {
 public:
  virtual ~BatchStore() = default;
  // Returns when the batch is durable. After an error it is not called again: the outcome is unknown (S32). A
  // batch without records is a barrier's: only where barriers are asked for.
  virtual Result<void> write(FrameBuilder& batch, Time time) = 0;
};

// Collects the records of steps in one buffer while its thread writes the other; then they change places. So
// under load batches grow by themselves, and an idle server writes each step at once. Whoever was answered by
// a batch is likely to ask again at once: the next one waits for as many steps as that one had, but no longer
// than it took. Without that the first to come would have a batch of his own, and all others would wait for
// it.
//
// Not its job: what a durable batch looks like (the store), or who waits for it (the caller, by sequence
// number). Time: a batch is stamped with the latest `now` of its steps, never an earlier one than the batch
// before; a clock is read only to see how long a write takes. Threads: one of its own, between start() and
// stop(); the other calls by any. Invariant: durable() only grows, and stays where it is from the first error
// on.
class GroupCommit {
 public:
  using Work = std::function<Result<void>()>;

  // Who writes: a thread, or, for a simulation that decides itself what happens when, whoever calls turn().
  enum class Drive : uint8_t { by_thread, by_hand };

  // `store` is used by the thread only, and by between_batches(). `full_batch_bytes`: what has become so
  // large takes no more steps; a step is never split.
  GroupCommit(BatchStore& store, size_t most_pending_bytes, Drive drive = Drive::by_thread,
              size_t full_batch_bytes = SIZE_MAX)
      : store_(store),
        most_pending_bytes_(most_pending_bytes),
        full_batch_bytes_(full_batch_bytes),
        drive_(drive) {}
  ~GroupCommit() { stop(); }

  void start(Time not_before, std::function<void(uint64_t)> on_durable, std::function<void(Error)> on_failed);
  // Before start() it collects, after stop() or a failure it only counts.
  uint64_t append(std::span<const Record> records, Time now, uint64_t last_event = 0) TS_EXCLUDES(mutex_);

  // A sequence that becomes durable only by a write that begins after this call, however little there is to
  // write.
  uint64_t barrier() TS_EXCLUDES(mutex_);

  uint64_t durable() const { return durable_.load(std::memory_order_acquire); }
  bool overloaded() const { return overloaded_.load(std::memory_order_relaxed); }
  Time latest_time() TS_EXCLUDES(mutex_);

  // Runs `work` on the thread, between two batches, when every step appended before this call is durable, and
  // waits for it. One caller at a time. An error of the work counts as a failed write.
  Result<void> between_batches(const Work& work) TS_EXCLUDES(mutex_);

  // Not from the callbacks: it waits for the thread.
  void stop() TS_EXCLUDES(mutex_);

  // By hand only: writes what is pending. False: there was nothing, or a write has failed.
  bool turn() TS_EXCLUDES(mutex_);

 private:
  enum class State { idle, running, stopping, stopped, failed };
  using SteadyTime = std::chrono::steady_clock::time_point;

  void run();
  // What the thread has to do next: a batch, then perhaps a piece of work.
  struct Turn {
    FrameBuilder batch;
    uint64_t sequence = 0;
    Time time{};
    bool barrier = false;
    const Work* work = nullptr;
  };
  // What is full and waits for its turn.
  struct Full {
    FrameBuilder batch;
    uint64_t sequence = 0;
    Time time{};
  };
  bool has_work() const TS_REQUIRES(mutex_) { return taken_ != accepted_ || work_ != nullptr; }
  // Waits for something to do. False: there is nothing more, end the thread.
  bool take_turn(Turn& turn) TS_EXCLUDES(mutex_);
  // Waits for those who have just been answered.
  void gather() TS_REQUIRES(mutex_);
  bool has_gathered() const TS_REQUIRES(mutex_) {
    return accepted_ - taken_ >= last_steps_ || work_ != nullptr || state_ != State::running ||
           !full_.empty();
  }
  void fill(Turn& turn) TS_REQUIRES(mutex_);
  void mark_last_event() TS_REQUIRES(mutex_);
  size_t pending_bytes() const TS_REQUIRES(mutex_) { return full_bytes_ + pending_.payload_size(); }
  Result<void> do_turn(Turn& turn) TS_EXCLUDES(mutex_);
  void publish(uint64_t sequence);
  void give_up(const Error& error) TS_EXCLUDES(mutex_);
  void wait(std::condition_variable& condition) TS_REQUIRES(mutex_);

  BatchStore& store_;
  const size_t most_pending_bytes_, full_batch_bytes_;
  const Drive drive_;
  std::function<void(uint64_t)> on_durable_;
  std::function<void(Error)> on_failed_;

  Mutex mutex_;
  std::condition_variable for_thread_;   // there is something to do
  std::condition_variable for_waiters_;  // the work is done, or never will be
  State state_ TS_GUARDED_BY(mutex_) = State::idle;
  std::deque<Full> full_ TS_GUARDED_BY(mutex_);  // before pending_
  size_t full_bytes_ TS_GUARDED_BY(mutex_) = 0;
  FrameBuilder pending_ TS_GUARDED_BY(mutex_);
  bool barrier_ TS_GUARDED_BY(mutex_) = false;   // pending_ is to be written even if it is empty
  uint64_t latest_ TS_GUARDED_BY(mutex_) = 0;    // the last step appended,
  uint64_t accepted_ TS_GUARDED_BY(mutex_) = 0;  // the last one whose records were taken into pending_,
  uint64_t taken_ TS_GUARDED_BY(mutex_) = 0;     // and the last one that the thread has taken to write
  Time latest_time_ TS_GUARDED_BY(mutex_){};
  uint64_t last_event_ TS_GUARDED_BY(mutex_) = 0;  // not yet marked in a batch; 0: nothing to mark
  bool thread_waits_ TS_GUARDED_BY(mutex_) = false;
  bool gathers_ TS_GUARDED_BY(mutex_) = false;       // it waits for as many steps as the last batch had,
  uint64_t last_steps_ TS_GUARDED_BY(mutex_) = 0;    // which are these,
  SteadyTime gather_until_ TS_GUARDED_BY(mutex_){};  // at the longest until then
  const Work* work_ TS_GUARDED_BY(mutex_) = nullptr;
  uint64_t work_after_ TS_GUARDED_BY(mutex_) = 0;  // the last step that must be durable before it

  std::atomic<uint64_t> durable_{0};
  std::atomic<bool> overloaded_{false};
  std::thread thread_;
};

}  // namespace turnstile
