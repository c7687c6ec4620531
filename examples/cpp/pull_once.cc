#include "pull_once.h"

Pulled pull_once(turnstile::LockClient& client, const std::string& resource,
                 const std::function<std::string(turnstile::Hold&)>& fetch, std::string& why) {
  turnstile::LockRequest request;
  request.operation = turnstile::operations::kPull;
  request.resource = resource;
  auto locked = client.lock(request);  // waits while another node pulls
  if (!locked) {
    why = locked.error().message;
    return Pulled::failed;
  }
  if (locked->skipped()) return Pulled::skipped;

  turnstile::Hold& hold = locked->hold;
  why = fetch(hold);
  // The next in line takes over after a failure; all others skip after a success.
  const auto released =
      hold.release(why.empty() ? turnstile::WorkResult::succeeded() : turnstile::WorkResult::failed(why));
  if (why.empty() && !released) why = released.error().message;
  if (!why.empty()) return Pulled::failed;
  return hold.attempt() > 1 ? Pulled::took_over : Pulled::ran;
}
