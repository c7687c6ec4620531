// A client that blocks, without a thread: its code runs on a stack of its own until it waits for something,
// and goes on when that has happened.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <functional>
#include <memory>

namespace turnstile::sim {

// Threads: one. A fiber that is not finished must not be destroyed: what is on its stack would never end.
class Fiber {
 public:
  explicit Fiber(std::function<void()> run);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: goes on until the next wait(), or the end.
  void resume();
  // From inside: lets whoever resumed it go on.
  void wait();
  bool finished() const { return finished_; }

 private:
  static void enter();

  std::function<void()> run_;
  std::unique_ptr<char[]> stack_;
  ucontext_t here_{}, there_{};
  jmp_buf inside_{}, outside_{};  // the same, without the kernel
  bool entered_ = false, finished_ = false;
};

}  // namespace turnstile::sim
