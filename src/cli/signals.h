// Signals as something to wait for, instead of something that interrupts.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/unique_fd.h"

namespace turnstile::cli {

// Blocks these signals in this thread, and so in those that it starts later, and reads them from fd().
// Made before any other thread, or the signal may go there. What was set before is set again at the end.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> numbers);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }
  // The next one, if it comes within `timeout`.
  std::optional<int> next(std::chrono::milliseconds timeout) const;
  // As it was before: what a program that is started from here should begin with.
  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t before_;
  UniqueFd fd_;
};

// While it lives, the first signal that comes uses the stop token.
// Threads: one of its own; the members may be called by any.
class StopOnSignal {
 public:
  explicit StopOnSignal(const Signals& signals);
  ~StopOnSignal();

  std::stop_token token() const { return stop_.get_token(); }
  int signal() const { return signal_.load(); }  // 0: none

 private:
  std::stop_source stop_;
  std::atomic<int> signal_{0};
  UniqueFd end_;
  std::jthread thread_;
};

}  // namespace turnstile::cli
