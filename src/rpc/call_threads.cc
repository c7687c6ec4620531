// See call_threads.h.
#include "rpc/call_threads.h"

#include <chrono>
#include <system_error>
#include <thread>

namespace turnstile::rpc {
namespace {

constexpr std::chrono::seconds kKept{10};

}  // namespace

bool CallThreads::run(std::function<void()> work) {
  const Locked lock(mutex_);
  if (ending_) return false;
  if (idle_ > work_.size()) {
    work_.push_back(std::move(work));
    for_thread_.notify_one();
    return true;
  }
  if (threads_ == limit_) return false;
  try {
    std::thread([this] { serve(); }).detach();  // it counts itself out; wait_for_all() waits for that
  } catch (const std::system_error&) {          // the machine has no more: like a limit
    return false;
  }
  ++threads_;
  work_.push_back(std::move(work));
  return true;
}

void CallThreads::serve() {
  mutex_.lock();
  while (true) {
    ++idle_;
    const bool found =
        for_thread_.wait_for(mutex_, kKept, [this]() TS_NO_ANALYSIS { return ending_ || !work_.empty(); });
    --idle_;
    if (!found || work_.empty()) break;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    mutex_.unlock();
    work();
    work = nullptr;  // what it holds goes now, not with the next one's
    mutex_.lock();
  }
  if (--threads_ == 0) for_end_.notify_all();
  mutex_.unlock();
}

void CallThreads::wait_for_all() {
  const Locked lock(mutex_);
  ending_ = true;
  for_thread_.notify_all();
  for_end_.wait(mutex_, [this]() TS_NO_ANALYSIS { return threads_ == 0; });
}

}  // namespace turnstile::rpc
