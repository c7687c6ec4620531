#include "pull_once.h"

#include <turnstile/with_lock.h>

using turnstile::WorkResult;

Pulled pull_once(turnstile::LockClient& client, const std::string& resource,
                 const std::function<std::string(turnstile::Hold&)>& fetch, std::string& why) {
  bool took_over = false;
  const auto work = [&](turnstile::Hold& hold) {
    took_over = hold.attempt() > 1;
    const std::string problem = fetch(hold);
    // The next in line takes over after a failure; all others skip after a success.
    return problem.empty() ? WorkResult::succeeded() : WorkResult::failed(problem);
  };
  const auto done = with_lock(client, {.operation = "pull", .resource = resource}, work);
  if (!done) why = done.error().message;
  if (!done) return Pulled::failed;
  return !done->here ? Pulled::skipped : took_over ? Pulled::took_over : Pulled::ran;
}
