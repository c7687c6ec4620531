#include "client/unlocking.h"

namespace turnstile::client {

Unlocked judge_refused_unlock(ClientError error, bool maybe_done) {
  if (error.code == ErrorCode::lost && maybe_done) {
    return {.released = Released{.already = true, .confirmed = false}};
  }
  return {.released = std::unexpected(std::move(error)), .maybe_done = maybe_done};
}

Unlocked unlock(Caller& caller, const Requester& who, uint64_t token, const WorkResult& result,
                bool maybe_done, Patience patience) {
  const auto reply = caller.call({.target = "/unlock",
                                  .body = unlock_body(who, token, result),
                                  .timeout = patience.timeout,
                                  .retries = patience.retries,
                                  .over_hand_over = patience.over_hand_over,
                                  .stop = std::move(patience.stop)});
  if (!reply) return judge_refused_unlock(reply.error().error, maybe_done || reply.error().maybe_done);
  return {.released = read_reply(reply, read_unlock)};
}

}  // namespace turnstile::client
