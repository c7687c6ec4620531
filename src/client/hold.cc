#include "turnstile/hold.h"

#include <utility>

#include "base/check.h"
#include "client/hold_state.h"

namespace turnstile {
namespace {

void close(std::shared_ptr<Hold::State> state) noexcept {
  if (!state) return;
  try {
    state->close();
  } catch (...) {  // out of memory: the lease ends it
  }
}

}  // namespace

Hold::Hold() = default;
Hold::Hold(std::shared_ptr<State> state) : state_(std::move(state)) {}
Hold::Hold(Hold&&) noexcept = default;
Hold& Hold::operator=(Hold&& other) noexcept {
  if (this != &other) close(std::exchange(state_, std::move(other.state_)));
  return *this;
}
Hold::~Hold() { close(std::move(state_)); }

namespace {
Hold::State& checked(const std::shared_ptr<Hold::State>& state) {
  TS_CHECK(state, "a Hold of nothing is not used");
  return *state;
}
}  // namespace

const std::string& Hold::operation() const { return checked(state_).granted().who.operation; }
const std::string& Hold::resource() const { return checked(state_).granted().who.resource; }
const std::string& Hold::request_id() const { return checked(state_).granted().who.request_id; }
uint64_t Hold::token() const { return checked(state_).granted().token; }
uint32_t Hold::attempt() const { return checked(state_).granted().attempt; }
const std::string& Hold::previous_error() const { return checked(state_).granted().previous_error; }
HoldState Hold::state() const { return checked(state_).state(); }
Hold::Clock::time_point Hold::believed_until() const { return checked(state_).believed_until(); }
void Hold::report_progress(uint64_t done, uint64_t total) { checked(state_).report_progress(done, total); }
Expected<void> Hold::renew() { return checked(state_).renew(); }
void Hold::on_change(std::function<void(HoldState)> callback) {
  checked(state_).on_change(std::move(callback));
}
Expected<Released> Hold::release(const WorkResult& result, std::stop_token stop) {
  return checked(state_).release(result, {.stop = std::move(stop)});
}
void Hold::detach() {
  checked(state_).detach();
  state_.reset();
}

}  // namespace turnstile
