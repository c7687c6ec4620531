#include "turnstile/with_lock.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "client/errors.h"

namespace turnstile {
namespace {

WorkResult call(const std::function<WorkResult(Hold&)>& work, Hold& hold) {
  try {
    return work(hold);
  } catch (const std::exception& error) {
    return WorkResult::failed(error.what());
  } catch (...) {
    return WorkResult::failed("the function threw something that is no std::exception");
  }
}

}  // namespace

inline namespace v1 {
Expected<WorkDone> with_lock(LockClient& client, const LockRequest& request,
                             const std::function<WorkResult(Hold&)>& work,
                             LockClient::Clock::time_point deadline, std::stop_token stop) {
  Expected<LockResult> locked = client.lock(request, deadline, std::move(stop));
  if (!locked) return std::unexpected(std::move(locked.error()));
  if (locked->skipped()) return WorkDone{.here = false, .by = std::move(locked->work)};
  WorkResult result = call(work, locked->hold);
  Expected<Released> released = locked->hold.release(result);
  if (!released && released.error().code == ErrorCode::invalid && !result.result.empty()) {
    // A text that the server does not take must not cost the work that was done.
    result.result.clear();
    released = locked->hold.release(result);
    if (released) released->result_kept = false;
  }
  if (!result.success) {
    return client::fail(ErrorCode::failed, released ? result.error
                                                    : fmt::format("{} (and that could not be reported: {})",
                                                                  result.error, released.error().message));
  }
  if (!released) return std::unexpected(std::move(released.error()));
  return WorkDone{.here = true, .by = {}, .released = std::move(*released)};
}
}  // namespace v1

}  // namespace turnstile
