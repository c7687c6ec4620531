// A held lock as an object.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "turnstile/clock.h"
#include "turnstile/error.h"
#include "turnstile/export.h"

namespace turnstile {
inline namespace v1 {

// How the work ended; the server reports it to the waiters.
struct WorkResult {
  bool success = false;
  std::string error{};     // why not; cut off after 4 KiB
  bool permanent = false;  // a retry cannot help (a 404, a bad digest): all waiters end with this error
  std::string result{};    // of a success: a text for those who skip, at most 4 KiB of UTF-8
  // Of a success: how long it counts, where the operation shares it. None: as long as the server's settings
  // say.
  std::optional<std::chrono::milliseconds> keep{};

  static WorkResult succeeded(std::string result = {},
                              std::optional<std::chrono::milliseconds> keep = std::nullopt) {
    return {.success = true, .error = {}, .permanent = false, .result = std::move(result), .keep = keep};
  }
  static WorkResult failed(std::string error) { return {.success = false, .error = std::move(error)}; }
  static WorkResult failed_for_all(std::string error) {
    return {.success = false, .error = std::move(error), .permanent = true};
  }
};

struct Released {
  bool already = false;  // an earlier try had released it; its answer was lost
  // Whether the server said that the result counts. False: it is not known. The answer to a first try was
  // lost, and a later one found the hold gone: released by that first try, or expired before it arrived. In
  // the second case the result does not count, and another node may be working.
  bool confirmed = true;
  // False: nobody will see the result: the server had no room for it, or does not accept such a text.
  bool result_kept = true;
  std::optional<std::chrono::milliseconds> keep{};  // with WorkResult::keep: how long it counts in fact
  std::string next{};                               // the node that was granted the lane in the same step
  std::vector<std::string> waiters{};               // nodes that waited for the resource just before
};

enum class HoldState {
  held,       // and believed
  in_danger,  // no renewal was confirmed for half of the lease: finish or stop soon
  lost,       // the server said so, or the time until which it may be believed is over: stop at once
  released,
};

class LockClient;

// Owns one hold of a lane.
//
// While it lives, a thread of the client renews the lease. Time: believed_until() is the last confirmed
// renewal, as of when it was *sent*, plus the lease, less a margin for clocks that run at different speeds;
// after that moment another node may hold the lane. Threads: all members may be called by any thread, but
// moving and destroying only by one while no other uses it. Destroyed unreleased, it releases as a failure
// ("abandoned"), so that the next waiter is granted at once. An empty Hold behaves like a released one: no
// call does harm, and those that can fail return `invalid`.
class TURNSTILE_API Hold {
 public:
  using Clock = LeaseClock;
  class State;

  Hold();  // empty
  explicit Hold(std::shared_ptr<State> state);
  Hold(Hold&&) noexcept;
  Hold& operator=(Hold&&) noexcept;
  ~Hold();

  explicit operator bool() const { return state_ != nullptr; }  // false: empty
  const std::string& operation() const;
  const std::string& resource() const;
  const std::string& request_id() const;
  uint64_t token() const;                     // the fencing number: pass it to whatever you write to
  uint32_t attempt() const;                   // from 1; more: others have failed before
  const std::string& previous_error() const;  // how the attempt before this one ended
  HoldState state() const;
  Clock::time_point believed_until() const;  // max(): no lease, until it is released

  // Waiters see it. Call it as often as you like: the next renewal, within a second, sends the latest.
  void report_progress(uint64_t done, uint64_t total);
  // Renews now. Error `lost`: the hold is gone.
  [[nodiscard]] Expected<void> renew();
  // Called once for each change to in_danger, back to held, and to lost, on a thread of the client; at once
  // if the state is already another one than `held`. It must not destroy the Hold.
  void on_change(std::function<void(HoldState)> callback);

  // Ends the hold. Repeating it is harmless: the second call returns what the first one did (D5). `stop` ends
  // its tries to reach a server: error `cancelled`, and whether it was released is not known.
  [[nodiscard]] Expected<Released> release(const WorkResult& result, std::stop_token stop = {});
  // Leaves the hold on the server as it is and becomes empty: no more renewals, no bond, no
  // release. For a process that ends before its hold does; whoever knows the token can release it.
  void detach();

 private:
  friend class LockClient;  // release_all
  std::shared_ptr<State> state_;
};

}  // namespace v1
}  // namespace turnstile
