// longjmp() between stacks is what this is about; the checked one takes it for a mistake.
#undef _FORTIFY_SOURCE
#include "fiber.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace turnstile::sim {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

// Sanitizers know what swapcontext() does. For all others it takes most of the time of a history: it asks the
// kernel for the mask of signals each time.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TURNSTILE_FIBERS_SWAP
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TURNSTILE_FIBERS_SWAP
#endif
#ifdef TURNSTILE_FIBERS_SWAP
constexpr bool kJumps = false;
#else
constexpr bool kJumps = true;
#endif

Fiber* the_new_one = nullptr;  // makecontext() passes ints only

// Stacks are used again: making one means to touch all of it.
std::vector<std::unique_ptr<char[]>>& spare_stacks() {
  static std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

}  // namespace

Fiber::Fiber(std::function<void()> run) : run_(std::move(run)) {
  if (spare_stacks().empty()) {
    stack_.reset(new char[kStackBytes]);
  } else {
    stack_ = std::move(spare_stacks().back());
    spare_stacks().pop_back();
  }
  TS_CHECK(getcontext(&here_) == 0, "a context can be read");
  here_.uc_stack.ss_sp = stack_.get();
  here_.uc_stack.ss_size = kStackBytes;
  here_.uc_link = &there_;
  makecontext(&here_, &Fiber::enter, 0);
}

Fiber::~Fiber() {
  TS_CHECK(finished_, "a fiber is finished before it is destroyed");
  spare_stacks().push_back(std::move(stack_));
}

void Fiber::enter() {
  Fiber* const self = the_new_one;
  self->run_();
  self->finished_ = true;
  if constexpr (kJumps) _longjmp(self->outside_, 1);
}

void Fiber::resume() {
  TS_CHECK(!finished_, "a fiber that is finished has nothing more to do");
  the_new_one = this;
  if constexpr (kJumps) {
    if (_setjmp(outside_) != 0) return;
    if (std::exchange(entered_, true)) _longjmp(inside_, 1);
    setcontext(&here_);
  } else {
    swapcontext(&there_, &here_);
  }
}

void Fiber::wait() {
  if constexpr (!kJumps)
    swapcontext(&here_, &there_);
  else if (_setjmp(inside_) == 0)
    _longjmp(outside_, 1);
}

}  // namespace turnstile::sim
