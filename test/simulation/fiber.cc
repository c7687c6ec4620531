#include "fiber.h"

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace turnstile::sim {
namespace {

constexpr size_t kStackBytes = 256 * 1024;

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
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&here_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, unsigned(self >> 32), unsigned(self));
}

Fiber::~Fiber() {
  TS_CHECK(finished_, "a fiber is finished before it is destroyed");
  spare_stacks().push_back(std::move(stack_));
}

// makecontext() passes ints only.
void Fiber::enter(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>(uintptr_t(high) << 32 | low);
  self->run_();
  self->finished_ = true;
}

void Fiber::resume() {
  TS_CHECK(!finished_, "a fiber that is finished has nothing more to do");
  swapcontext(&there_, &here_);
}

void Fiber::wait() { swapcontext(&here_, &there_); }

}  // namespace turnstile::sim
