#include "journal/group_commit.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace turnstile {
namespace {

using std::chrono::steady_clock;

// After a write that took seconds nobody is to wait as long again.
constexpr std::chrono::milliseconds kLongestGathering{5};

std::unexpected<Error> not_running() { return fail("the journal has stopped, or a write to it has failed"); }

}  // namespace

void GroupCommit::start(Time not_before, std::function<void(uint64_t)> on_durable,
                        std::function<void(Error)> on_failed) {
  on_durable_ = std::move(on_durable);
  on_failed_ = std::move(on_failed);
  {
    Locked lock(mutex_);
    TS_CHECK(state_ == State::idle, "a journal is started once");
    state_ = State::running;
    latest_time_ = std::max(latest_time_, not_before);
  }
  if (drive_ == Drive::by_thread) thread_ = std::thread([this] { run(); });
}

uint64_t GroupCommit::append(std::span<const Record> records, Time now, uint64_t last_event) {
  bool wake = false;
  uint64_t sequence;
  {
    Locked lock(mutex_);
    sequence = ++latest_;
    // What can never become durable takes no memory either.
    if (state_ != State::running && state_ != State::idle) return sequence;
    accepted_ = sequence;
    for (const Record& record : records) pending_.add(record);
    latest_time_ = std::max(latest_time_, now);
    last_event_ = std::max(last_event_, last_event);
    if (pending_bytes() > most_pending_bytes_) overloaded_.store(true, std::memory_order_relaxed);
    if (pending_.payload_size() >= full_batch_bytes_) {
      mark_last_event();
      full_bytes_ += pending_.payload_size();
      full_.push_back({std::exchange(pending_, {}), sequence, latest_time_});
    }
    wake = std::exchange(thread_waits_, false) || (gathers_ && has_gathered());
  }
  if (wake) for_thread_.notify_one();
  return sequence;
}

// What nobody has taken yet is written later than now, so the last of it will do.
uint64_t GroupCommit::barrier() {
  bool wake = false;
  uint64_t sequence;
  {
    Locked lock(mutex_);
    if (state_ != State::running && state_ != State::idle) return ++latest_;
    barrier_ = true;
    if (accepted_ == taken_) accepted_ = ++latest_;
    sequence = accepted_;
    wake = std::exchange(thread_waits_, false) || (gathers_ && has_gathered());
  }
  if (wake) for_thread_.notify_one();
  return sequence;
}

Time GroupCommit::latest_time() {
  Locked lock(mutex_);
  return latest_time_;
}

Result<void> GroupCommit::between_batches(const Work& work) {
  Result<void> result = not_running();
  const Work noting = [&] { return result = work(); };
  {
    Locked lock(mutex_);
    if (state_ != State::running) return result;
    TS_CHECK(work_ == nullptr, "one piece of work at a time");
    work_ = &noting;
    work_after_ = accepted_;
    thread_waits_ = false;
    for_thread_.notify_one();
  }
  while (drive_ == Drive::by_hand && turn()) {
  }
  Locked lock(mutex_);
  // Ends, because the thread does the work, or gives up and says so, before it stops.
  while (work_ == &noting) wait(for_waiters_);
  return result;
}

void GroupCommit::stop() {
  {
    Locked lock(mutex_);
    if (state_ == State::running) state_ = State::stopping;
  }
  for_thread_.notify_one();
  if (thread_.joinable()) thread_.join();
  while (drive_ == Drive::by_hand && turn()) {
  }
  Locked lock(mutex_);
  if (state_ != State::failed) state_ = State::stopped;
}

void GroupCommit::run() {
  Turn turn;
  while (take_turn(turn)) {
    if (const auto done = do_turn(turn); !done) return give_up(done.error());
  }
}

bool GroupCommit::turn() {
  Turn turn;
  {
    Locked lock(mutex_);
    if (!has_work() || (state_ != State::running && state_ != State::stopping)) return false;
    fill(turn);
  }
  if (const auto done = do_turn(turn); !done) {
    give_up(done.error());
    return false;
  }
  return true;
}

bool GroupCommit::take_turn(Turn& turn) {
  Locked lock(mutex_);
  while (!has_work()) {
    if (state_ == State::stopping) return false;
    thread_waits_ = true;
    wait(for_thread_);
  }
  thread_waits_ = false;
  gather();
  fill(turn);
  return true;
}

void GroupCommit::gather() {
  gathers_ = true;
  std::unique_lock<std::mutex> held(mutex_.native(), std::adopt_lock);
  while (!has_gathered() && for_thread_.wait_until(held, gather_until_) == std::cv_status::no_timeout) {
  }
  held.release();
  gathers_ = false;
}

void GroupCommit::fill(Turn& turn) {
  if (!full_.empty()) {
    Full& first = full_.front();
    turn.batch = std::move(first.batch);
    turn.sequence = first.sequence;
    turn.time = first.time;
    turn.barrier = false;
    full_bytes_ -= turn.batch.payload_size();
    full_.pop_front();
  } else {
    mark_last_event();
    std::swap(turn.batch, pending_);
    turn.sequence = accepted_;
    turn.time = latest_time_;
    turn.barrier = std::exchange(barrier_, false);
  }
  last_steps_ = turn.sequence - taken_;
  taken_ = turn.sequence;
  // Now, not later: what was appended before the work came is in this batch, or in one before.
  turn.work = taken_ >= work_after_ ? work_ : nullptr;
  overloaded_.store(pending_bytes() > most_pending_bytes_, std::memory_order_relaxed);
}

// One for all steps of the batch.
void GroupCommit::mark_last_event() {
  const uint64_t last_event = std::exchange(last_event_, 0);
  if (last_event == 0) return;
  Record mark;
  mark.kind = RecordKind::event_mark;
  mark.number = last_event;
  pending_.add(mark);
}

Result<void> GroupCommit::do_turn(Turn& turn) {
  // A step without records waits for those before it, and they are durable by now.
  if (turn.batch.records() > 0 || turn.barrier) {
    const SteadyTime begun = steady_clock::now();
    if (auto done = store_.write(turn.batch, turn.time); !done) return done;
    const SteadyTime ended = steady_clock::now();
    Locked lock(mutex_);
    gather_until_ = ended + std::min<steady_clock::duration>(ended - begun, kLongestGathering);
  }
  turn.batch.clear();
  if (turn.sequence > durable()) publish(turn.sequence);
  if (turn.work == nullptr) return {};
  const Result<void> done = (*turn.work)();
  Locked lock(mutex_);
  work_ = nullptr;
  for_waiters_.notify_all();
  return done;
}

void GroupCommit::publish(uint64_t sequence) {
  durable_.store(sequence, std::memory_order_release);
  on_durable_(sequence);
}

void GroupCommit::give_up(const Error& error) {
  {
    Locked lock(mutex_);
    state_ = State::failed;
    pending_.clear();
    full_.clear();
    full_bytes_ = 0;
    work_ = nullptr;
    overloaded_.store(false, std::memory_order_relaxed);
    for_waiters_.notify_all();
  }
  on_failed_(error);
}

void GroupCommit::wait(std::condition_variable& condition) {
  std::unique_lock<std::mutex> held(mutex_.native(), std::adopt_lock);
  condition.wait(held);
  held.release();
}

}  // namespace turnstile
