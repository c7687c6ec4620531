#include "turnstile/with_lock.h"

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
  const WorkResult result = call(work, locked->hold);
  Expected<Released> released = locked->hold.release(result);
  if (!result.success) return client::fail(ErrorCode::failed, result.error);
  if (!released) return std::unexpected(std::move(released.error()));
  return WorkDone{.here = true, .by = {}, .released = std::move(*released)};
}
}  // namespace v1

}  // namespace turnstile
