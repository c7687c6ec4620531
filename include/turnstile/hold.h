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

// How the work ended; what the waiters are told.
struct WorkResult {
  bool success = false;
  std::string error{};     // why not; what is behind 4 KiB is cut off
  bool permanent = false;  // nobody can do better (a 404, a bad digest): all waiters end with this error
  std::string result{};    // of a success: what those who skip are told, at most 4 KiB of UTF-8
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
  // Whether the server said that the result counts. False: it is assumed. The answer to a first try was lost,
  // and a later one found the hold gone: by that first try, or because the lease had run out before it
  // arrived, and then the result counts for nothing, and others may be at the work by now.
  bool confirmed = true;
  // False: nobody will see the result, because the server had no room for it, or takes none like it.
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
// While it lives, a thread of the client's renews the lease. Time: believed_until() is the last confirmed
// renewal, as of when it was *sent*, plus the lease, less a margin for clocks that run at different speeds;
// after that moment another node may hold the lane. Threads: all members may be called by any thread, but
// moving and destroying only by one while no other uses it. Destroyed unreleased, it releases as a failure
// ("abandoned"), so that the next in line goes on at once. A Hold of nothing is as one that was released: no
// call does harm, and those that can fail say `invalid`.
class TURNSTILE_API Hold {
 public:
  using Clock = LeaseClock;
  class State;

  Hold();  // of nothing
  explicit Hold(std::shared_ptr<State> state);
  Hold(Hold&&) noexcept;
  Hold& operator=(Hold&&) noexcept;
  ~Hold();

  explicit operator bool() const { return state_ != nullptr; }  // whether it is of something
  const std::string& operation() const;
  const std::string& resource() const;
  const std::string& request_id() const;
  uint64_t token() const;                     // the fencing number: pass it to whatever you write to
  uint32_t attempt() const;                   // from 1; more: others have failed before
  const std::string& previous_error() const;  // how the attempt before this one ended
  HoldState state() const;
  Clock::time_point believed_until() const;  // max(): no lease, until it is released

  // Shown to whoever waits, as often as one likes: it travels with the next renewal, which comes within a
  // second.
  void report_progress(uint64_t done, uint64_t total);
  // Renews now, for callers that must know. Error `lost`: it is gone.
  [[nodiscard]] Expected<void> renew();
  // Called once for each change to in_danger, back to held, and to lost, on a thread of the client's, soon;
  // a state other than `held` that is already there is told at once. It must not destroy the Hold.
  void on_change(std::function<void(HoldState)> callback);

  // Ends the hold. Repeating it is harmless: the second call returns what the first one did (D5). `stop` ends
  // its tries to reach a server: error `cancelled`, and whether it was released is not known.
  [[nodiscard]] Expected<Released> release(const WorkResult& result, std::stop_token stop = {});
  // Leaves the hold on the server as it is and becomes a Hold of nothing: no more renewals, no bond, no
  // release. For a process that ends before its hold does; whoever knows the token can release it.
  void detach();

 private:
  friend class LockClient;  // release_all
  std::shared_ptr<State> state_;
};

}  // namespace v1
}  // namespace turnstile
