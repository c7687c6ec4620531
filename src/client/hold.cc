#include "turnstile/hold.h"

#include <utility>

#include "client/errors.h"
#include "client/hold_state.h"

namespace turnstile {
namespace {

void close(const std::shared_ptr<Hold::State>& state) noexcept {
  if (!state) return;
  try {
    state->close();
  } catch (...) {
    return;  // out of memory: the lease ends it
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
Hold::~Hold() { close(state_); }

namespace {
// What a Hold of nothing tells of itself.
const Hold::State::Granted kNothing{};

const Hold::State::Granted& granted_of(const std::shared_ptr<Hold::State>& state) {
  return state ? state->granted() : kNothing;
}

std::unexpected<ClientError> of_nothing() {
  return client::fail(ErrorCode::invalid, "this Hold is empty: there is no lock to renew or release");
}
}  // namespace

const std::string& Hold::operation() const { return granted_of(state_).who.operation; }
const std::string& Hold::resource() const { return granted_of(state_).who.resource; }
const std::string& Hold::request_id() const { return granted_of(state_).who.request_id; }
uint64_t Hold::token() const { return granted_of(state_).token; }
uint32_t Hold::attempt() const { return granted_of(state_).attempt; }
const std::string& Hold::previous_error() const { return granted_of(state_).previous_error; }
HoldState Hold::state() const { return state_ ? state_->state() : HoldState::released; }
Hold::Clock::time_point Hold::believed_until() const {
  return state_ ? state_->believed_until() : Clock::time_point::min();
}
void Hold::report_progress(uint64_t done, uint64_t total) {
  if (state_) state_->report_progress(done, total);
}
Expected<void> Hold::renew() {
  if (!state_) return of_nothing();
  return state_->renew();
}
void Hold::on_change(std::function<void(HoldState)> callback) {
  if (state_) state_->on_change(std::move(callback));
}
Expected<Released> Hold::release(const WorkResult& result, std::stop_token stop) {
  if (!state_) return of_nothing();
  return state_->release(result, {.stop = std::move(stop)});
}
void Hold::detach() {
  if (state_) state_->detach();
  state_.reset();
}

}  // namespace turnstile
