#include "journal/group_commit.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace turnstile {
namespace {

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
  thread_ = std::thread([this] { run(); });
}

uint64_t GroupCommit::append(std::span<const Record> records, Time now) {
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
    if (pending_.payload_size() > most_pending_bytes_) overloaded_.store(true, std::memory_order_relaxed);
    wake = std::exchange(thread_waits_, false);
  }
  if (wake) for_thread_.notify_one();
  return sequence;
}

uint64_t GroupCommit::latest() {
  Locked lock(mutex_);
  return latest_;
}

Time GroupCommit::latest_time() {
  Locked lock(mutex_);
  return latest_time_;
}

Result<void> GroupCommit::between_batches(const std::function<Result<void>()>& work) {
  Result<void> result;
  const std::function<Result<void>()> noting = [&] { return result = work(); };
  Locked lock(mutex_);
  if (state_ != State::running) return not_running();
  TS_CHECK(work_ == nullptr, "one piece of work at a time");
  work_ = &noting;
  thread_waits_ = false;
  for_thread_.notify_one();
  // The thread does the work before it looks at its state again, so this ends, and `noting` outlives its use.
  while (work_ == &noting) wait(for_waiters_);
  if (!result) return result;
  return state_ == State::failed ? Result<void>(not_running()) : result;
}

Result<void> GroupCommit::wait_durable(uint64_t sequence) {
  Locked lock(mutex_);
  while (durable() < sequence) {
    if (state_ == State::failed || state_ == State::stopped) return not_running();
    wait(for_waiters_);
  }
  return {};
}

void GroupCommit::stop() {
  {
    Locked lock(mutex_);
    if (state_ == State::running) state_ = State::stopping;
  }
  for_thread_.notify_one();
  if (thread_.joinable()) thread_.join();
  Locked lock(mutex_);
  if (state_ != State::failed) state_ = State::stopped;
  for_waiters_.notify_all();
}

void GroupCommit::run() {
  FrameBuilder writing;
  uint64_t sequence = 0;
  Time time;
  while (take_batch(writing, sequence, time)) {
    Result<void> done;
    // A step without records waits for those before it, and they are durable by now.
    if (writing.records() > 0) done = store_.write(writing, time);
    writing.clear();
    if (done && sequence > durable()) publish(sequence);
    if (done) done = do_work();
    if (!done) return give_up(done.error());
  }
}

bool GroupCommit::take_batch(FrameBuilder& writing, uint64_t& sequence, Time& time) {
  Locked lock(mutex_);
  while (taken_ == accepted_ && work_ == nullptr) {
    if (state_ == State::stopping) return false;
    thread_waits_ = true;
    wait(for_thread_);
  }
  thread_waits_ = false;
  std::swap(writing, pending_);
  sequence = taken_ = accepted_;
  time = latest_time_;
  overloaded_.store(false, std::memory_order_relaxed);
  return true;
}

Result<void> GroupCommit::do_work() {
  const std::function<Result<void>()>* work;
  {
    Locked lock(mutex_);
    work = work_;
  }
  if (work == nullptr) return {};
  const Result<void> done = (*work)();
  Locked lock(mutex_);
  work_ = nullptr;
  for_waiters_.notify_all();
  return done;
}

void GroupCommit::publish(uint64_t sequence) {
  {
    Locked lock(mutex_);
    durable_.store(sequence, std::memory_order_release);
    for_waiters_.notify_all();
  }
  on_durable_(sequence);
}

void GroupCommit::give_up(const Error& error) {
  {
    Locked lock(mutex_);
    state_ = State::failed;
    pending_.clear();
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
